#include <tandem/model.h>
#include <tandem/session.h>

#include <cstdio>

int main() {
  const auto model = tandem::Model::load("zoo:tiny_conv");
  if (!model.ok()) return std::fprintf(stderr, "%s\n", model.status().to_string().c_str()), 1;
  const auto session = tandem::Session::create(*model);
  if (!session.ok()) return std::fprintf(stderr, "%s\n", session.status().to_string().c_str()), 1;

  const tandem::TensorSpec& input = model->inputs().front();
  std::vector<tandem::HostTensor> outputs;
  const tandem::Status status =
      (*session)->run({tandem::HostTensor(input.type, input.dims)}, &outputs);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.to_string().c_str()), 1;
  std::printf("%s\n", tandem::to_string(outputs.front().dims).c_str());
  return 0;
}
