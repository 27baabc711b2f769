// Predictors know implementations by the numbers of their names: every name that lanes report has
// one.
#include <gtest/gtest.h>

#include <set>

#include "graph/partition.h"
#include "predict/slice_names.h"
#include "profile/graph_memory.h"
#include "tandem/platform.h"
#include "tests/support/operator_table.h"

namespace tandem {
namespace {

// The whole operator, and its first and last parts along every axis.
std::vector<Slice> slices_of(const Graph& graph) {
  std::vector<Slice> slices = {{0}};
  for (const PartitionAxis& axis : partition_axes(graph, 0)) {
    const int64_t extent = graph.output_of(0).dims[axis.axis];
    const int64_t cut = (extent / axis.granularity + 1) / 2 * axis.granularity;
    if (cut <= 0 || cut >= extent) continue;
    slices.push_back({0, axis.axis, 0, cut});
    slices.push_back({0, axis.axis, cut, extent});
  }
  return slices;
}

// What the lane reports for a case; nothing where it has no implementation.
Status collect(Lane& lane, const testing::OperatorCase& c, std::set<std::string>* names) {
  TANDEM_ASSIGN_OR_RETURN(const testing::BuiltCase built, testing::build(c, 1));
  TANDEM_ASSIGN_OR_RETURN(const GraphMemory memory,
                          GraphMemory::create(built.graph, {&lane}, [](const Tensor& tensor) {
                            return HostTensor(tensor.type, tensor.dims);
                          }));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<LaneProgram> program,
                          lane.load(built.graph, memory.bindings()));
  for (const Slice& slice : slices_of(built.graph)) {
    const StatusOr<ImplementationInfo> info = program->implementation(slice, 0);
    if (info.ok()) names->insert(info->name);
  }
  return {};
}

TEST(ImplementationNames, OfAllLanesAreKnownToPredictors) {
  const StatusOr<std::shared_ptr<Platform>> platform = Platform::create();
  ASSERT_TRUE(platform.ok()) << platform.status().to_string();
  for (const auto& lane : (*platform)->lanes()) {
    SCOPED_TRACE(lane->info().name);
    std::set<std::string> names;
    for (const testing::OperatorCase& c : testing::operator_table()) {
      const Status status = collect(*lane, c, &names);
      EXPECT_TRUE(status.ok()) << c.name << ": " << status.to_string();
    }
    EXPECT_GT(names.size(), 5u);
    for (const std::string& name : names) {
      const std::string_view base = predict::split_implementation(name).base;
      EXPECT_GT(predict::implementation_number(base), 0)
          << name << ": add " << base << " to the end of kImplementations";
    }
  }
}

}  // namespace
}  // namespace tandem
