#include "simulate/start_time.h"

#include <gtest/gtest.h>

#include "lane/sim/world.h"
#include "platform/platform_file.h"

namespace tandem::simulate {
namespace {

TEST(StartTime, CountsProgramsOnceAndWeightsForEveryLane) {
  StatusOr<sim::PlatformModel> model = load_platform("pixel4");
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  model->start = {.compile_ms = 100, .load_ms = 10};
  // Two equal layers, which take one program.
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {64, 256});
  for (const char* name : {"first", "second"}) {
    const TensorId w = graph.add_constant("", HostTensor(DataType::kFloat32, {256, 256}));
    x = *graph.add(name, LinearAttributes{}, {x, w});
  }
  graph.mark_output(x);
  const StartTime start = start_time(graph, *model);
  EXPECT_EQ(start.programs, 1);
  EXPECT_EQ(start.compile_ms, 100);
  EXPECT_EQ(start.load_ms, 10);
  const double bytes = 2 * 256 * 256 * 4;
  const double lanes = static_cast<double>(model->lanes.size());
  EXPECT_NEAR(start.weights_ms, 1e-3 * lanes * bytes * sim::copy_us_per_byte(*model), 1e-9);
  EXPECT_EQ(start.cold_ms(), start.weights_ms + 100);

  std::erase_if(model->lanes, [](const sim::LaneSpec& lane) { return lane.cores.empty(); });
  EXPECT_EQ(start_time(graph, *model).programs, 0);
}

}  // namespace
}  // namespace tandem::simulate
