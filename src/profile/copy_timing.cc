#include "profile/copy_timing.h"

#include <algorithm>
#include <utility>

#include "schedule/cost_table.h"
#include "support/statistics.h"

namespace tandem {
namespace {

class CopyTask : public Task {
 public:
  CopyTask(LaneProgram& program, TensorRegion what, bool upload)
      : program_(program), what_(std::move(what)), upload_(upload) {}

  Status launch() override {
    return upload_ ? program_.enqueue_upload(what_.tensor, what_.region)
                   : program_.enqueue_download(what_.tensor, what_.region);
  }
  const ImplementationInfo& info() const override { return info_; }

 private:
  LaneProgram& program_;
  const TensorRegion what_;
  const bool upload_;
  const ImplementationInfo info_{.name = "copy"};
};

// Kernels write it, so that it is no constant and has memory.
TensorId largest_tensor(const Graph& graph) {
  const auto elements = [&](TensorId id) { return element_count(graph.tensor(id).dims); };
  TensorId largest = kNone;
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    const TensorId output = graph.op(static_cast<OperatorId>(op)).output;
    if (graph.tensor(output).dims.empty()) continue;
    if (largest == kNone || elements(output) > elements(largest)) largest = output;
  }
  return largest;
}

}  // namespace

StatusOr<CopyTimes> time_copies(const Graph& graph, LaneProgram& program, SliceTimer& timer) {
  const TensorId tensor = largest_tensor(graph);
  if (tensor == kNone) return CopyTimes{};
  const Region all = whole_region(graph.tensor(tensor).dims);
  Region least = all;
  for (Range& range : least) range.end = 1;
  Region half = all;
  half.back().end = std::max<int64_t>(half.back().end / 2, 1);
  const std::vector<Region> regions{least, all, half};

  std::vector<CopyTask> copies;
  for (const Region& region : regions) {
    for (const bool upload : {true, false})
      copies.emplace_back(program, TensorRegion{tensor, region}, upload);
  }
  std::vector<Task*> tasks;
  for (CopyTask& copy : copies) tasks.push_back(&copy);
  constexpr size_t kSamples = 9;
  constexpr int kMostRounds = 100;
  std::vector<std::vector<double>> samples(regions.size());
  const auto enough = [&] {
    return std::all_of(samples.begin(), samples.end(),
                       [](const auto& s) { return s.size() >= 2 * kSamples; });
  };
  for (int round = 0; round < kMostRounds && !enough(); ++round) {
    TANDEM_ASSIGN_OR_RETURN(const auto times, timer.time(tasks));
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i]) samples[i / 2].push_back(*times[i]);  // either way
    }
  }
  if (!enough()) {
    return deadline_exceeded("copies could not be timed, since this process was kept from running");
  }
  std::vector<double> us;
  for (const std::vector<double>& s : samples) us.push_back(summarize(s).median);

  const CopySize whole = copy_size(graph, {tensor, all});
  const CopySize part = copy_size(graph, {tensor, half});
  CopyTimes result;
  result.base = us[0];
  result.per_byte = std::max(0.0, us[1] - us[0]) / static_cast<double>(whole.bytes);
  const double contiguous = result.base + result.per_byte * static_cast<double>(part.bytes);
  result.per_piece = std::max(0.0, us[2] - contiguous) / static_cast<double>(part.pieces);
  return result;
}

}  // namespace tandem
