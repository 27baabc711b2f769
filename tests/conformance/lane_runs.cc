#include "tests/conformance/lane_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "graph/partition.h"
#include "graph/reference.h"
#include "lane/lane.h"
#include "schedule/schedule.h"

namespace tandem::testing {
namespace {

// Cuts every operator that can be cut about half-way, along its axis number `choice` (or its last
// one, if it has fewer), and deals the others to the lanes in turn. `cuts` counts the former.
StatusOr<Schedule> split_schedule(const Graph& graph, size_t lanes, Pair pair, size_t choice,
                                  int* cuts) {
  Schedule schedule;
  schedule.strategy = "split";
  schedule.lanes.resize(lanes);
  const auto put = [&](int lane, const Slice& slice) {
    ScheduledSlice scheduled;
    scheduled.slice = slice;
    schedule.lanes[lane].push_back(scheduled);
  };
  for (OperatorId op = 0; op < static_cast<OperatorId>(graph.operators().size()); ++op) {
    if (is_alias(graph, op)) continue;
    // Which lane begins changes from one operator to the next, so that data has to cross.
    const int first = op % 2 == 0 ? pair.cpu : pair.gpu;
    const int second = op % 2 == 0 ? pair.gpu : pair.cpu;
    const std::vector<PartitionAxis> axes = partition_axes(graph, op);
    if (axes.empty()) {
      put(first, {op});
      continue;
    }
    const PartitionAxis axis = axes[std::min(choice, axes.size() - 1)];
    const int64_t extent = graph.output_of(op).dims[axis.axis];
    const int64_t half =
        std::max(axis.granularity, extent / 2 / axis.granularity * axis.granularity);
    put(first, {op, axis.axis, 0, half});
    put(second, {op, axis.axis, half, extent});
    ++*cuts;
  }
  TANDEM_RETURN_IF_ERROR(derive_waits(graph, &schedule));
  return schedule;
}

}  // namespace

StatusOr<std::shared_ptr<Platform>> platform() {
  static const StatusOr<std::shared_ptr<Platform>> shared = [] {
    PlatformOptions options;
    options.program_cache_dir =
        (std::filesystem::path(::testing::TempDir()) / "tandem_conformance_programs").string();
    return Platform::create(options);
  }();
  return shared;
}

Pair lanes_of(const Platform& platform) {
  Pair pair;
  for (int i = static_cast<int>(platform.lanes().size()) - 1; i >= 0; --i) {
    (platform.lanes()[i]->info().kind == LaneKind::kOpenCl ? pair.gpu : pair.cpu) = i;
  }
  return pair;
}

std::string run_on_lanes(const LoadedTest& loaded, const SessionOptions& options,
                         const Compare& compare) {
  StatusOr<std::shared_ptr<Platform>> on = platform();
  if (!on.ok()) return on.status().to_string();
  StatusOr<std::unique_ptr<Session>> session = Session::create(*loaded.model, *on, options);
  if (!session.ok()) return session.status().to_string();
  std::vector<HostTensor> outputs;
  // Twice: a session must not depend on what an earlier run left behind.
  for (int i = 0; i < 2; ++i) {
    const Status status = (*session)->run(loaded.inputs, &outputs);
    if (!status.ok()) return status.to_string();
    const std::string difference = compare(outputs);
    if (!difference.empty()) return difference;
  }
  return "";
}

SessionOptions base_options() {
  SessionOptions options;
  options.calibration_dir = "none";
  return options;
}

std::string run_split(const LoadedTest& loaded, SyncMechanism sync, const Compare& compare,
                      bool* cut) {
  StatusOr<std::shared_ptr<Platform>> on = platform();
  const Graph& graph = loaded.model->graph();
  size_t choices = 1;
  for (OperatorId op = 0; op < static_cast<OperatorId>(graph.operators().size()); ++op) {
    choices = std::max(choices, partition_axes(graph, op).size());
  }
  int cuts = 0;
  for (size_t choice = 0; choice < choices; ++choice) {
    StatusOr<Schedule> schedule =
        split_schedule(graph, (*on)->lanes().size(), lanes_of(**on), choice, &cuts);
    if (!schedule.ok()) return schedule.status().to_string();
    const Status valid = check_schedule(graph, *schedule);
    if (!valid.ok()) return valid.to_string();
    SessionOptions options = base_options();
    options.sync = sync;
    options.schedule = std::make_shared<const Schedule>(std::move(*schedule));
    const std::string wrong = run_on_lanes(loaded, options, compare);
    if (!wrong.empty()) return "cut along axis choice " + std::to_string(choice) + ": " + wrong;
  }
  *cut = cuts > 0;
  return "";
}

std::vector<HostTensor> reference_outputs(const LoadedTest& loaded) {
  const Graph& graph = loaded.model->graph();
  const std::vector<ReferenceTensor> values = reference(graph, loaded.inputs);
  std::vector<HostTensor> outputs;
  for (TensorId id : graph.outputs()) {
    HostTensor output(graph.tensor(id).type, graph.tensor(id).dims);
    for (int64_t i = 0; i < output.size(); ++i) {
      if (output.type == DataType::kFloat32) {
        output.data<float>()[i] = static_cast<float>(values[id].values[i]);
      } else {
        output.data<int64_t>()[i] = static_cast<int64_t>(values[id].values[i]);
      }
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace tandem::testing
