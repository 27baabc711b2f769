// VGG (Simonyan and Zisserman, 2014), configuration D without batch normalization.
#include <string>

#include "zoo/networks.h"

namespace tandem::zoo {

void vgg16(GraphBuilder& g) {
  constexpr struct {
    int convolutions;
    int64_t channels;
  } kStages[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};

  Value x = g.input("input", {1, 3, 224, 224});
  int stage_number = 1;
  for (const auto& stage : kStages) {
    const auto scope = g.scope("stage" + std::to_string(stage_number++));
    for (int i = 1; i <= stage.convolutions; ++i) {
      x = g.conv(x, "conv" + std::to_string(i),
                 {.out = stage.channels, .kernel = 3, .pad = 1, .bias = true});
      x = g.relu(x);
    }
    x = g.max_pool(x, {.kernel = 2, .stride = 2});
  }
  // What the exporter makes of an adaptive pooling from 7x7 to 7x7: nothing, as an operator.
  x = g.average_pool(x, {.kernel = 1, .stride = 1});
  x = g.flatten(x);
  x = g.relu(g.linear(x, "classifier.fc1", 4096));
  x = g.relu(g.linear(x, "classifier.fc2", 4096));
  g.output(g.linear(x, "classifier.fc3", 1000), "logits");
}

}  // namespace tandem::zoo
