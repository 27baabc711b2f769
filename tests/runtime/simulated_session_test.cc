// Sessions, profiles and predictors on a simulated platform, through the interfaces of real ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "graph/reference.h"
#include "platform/simulated_platform.h"
#include "profile/profiler.h"
#include "profile/training.h"
#include "report/timeline.h"
#include "schedule/schedule.h"
#include "tandem/session.h"

namespace tandem {
namespace {

std::shared_ptr<SimulatedPlatform> platform(const std::string& name, uint64_t seed = 1) {
  StatusOr<sim::PlatformModel> model = load_platform(name);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return make_simulated_platform(std::move(*model), seed);
}

SessionOptions options(const std::string& strategy) {
  SessionOptions options;
  options.strategy = strategy;
  options.calibration_dir = "none";
  options.costs = CostSource::kCalibrated;
  return options;
}

HostTensor ramp(const TensorSpec& spec) {
  HostTensor tensor(spec.type, spec.dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(i % 17) / 17;
  }
  return tensor;
}

TEST(SimulatedSession, PlansAndRunsEveryStrategy) {
  const StatusOr<Model> model = Model::load("zoo:tiny_residual");
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  for (const char* name : {"pixel4", "rk3588"}) {
    for (const char* strategy : {"cpu", "gpu", "intra", "joint"}) {
      const auto session = Session::create(*model, platform(name), options(strategy));
      ASSERT_TRUE(session.ok()) << session.status().to_string();
      std::vector<HostTensor> outputs;
      const Status done = (*session)->run({ramp(model->inputs()[0])}, &outputs);
      ASSERT_TRUE(done.ok()) << done.to_string();
      EXPECT_GT((*session)->last_run_us(), 0);
      ASSERT_EQ(outputs.size(), 1u);
      EXPECT_EQ(outputs[0].dims, model->outputs()[0].dims);
      EXPECT_EQ((*session)->tensor("x").status().code(), StatusCode::kFailedPrecondition);
      std::vector<HostTensor> wrong;
      EXPECT_FALSE((*session)->run({}, &wrong).ok());
    }
  }
}

TEST(SimulatedSession, IsDeterministicForASeed) {
  const StatusOr<Model> model = Model::load("zoo:tiny_concat");
  ASSERT_TRUE(model.ok());
  const auto times = [&](uint64_t seed) {
    const auto session = Session::create(*model, platform("pixel4", seed), options("gpu"));
    EXPECT_TRUE(session.ok()) << session.status().to_string();
    std::vector<double> us;
    std::vector<HostTensor> outputs;
    for (int run = 0; run < 3; ++run) {
      EXPECT_TRUE((*session)->run({ramp(model->inputs()[0])}, &outputs).ok());
      us.push_back((*session)->last_run_us());
    }
    return us;
  };
  EXPECT_EQ(times(4), times(4));
  EXPECT_NE(times(4), times(5));
  EXPECT_NE(times(4)[0], times(4)[1]);
}

TEST(SimulatedSession, ValuesAreTheReferences) {
  const StatusOr<Model> model = Model::load("zoo:tiny_conv");
  ASSERT_TRUE(model.ok());
  SessionOptions wanted = options("gpu");
  wanted.keep_all = true;
  const auto session = Session::create(*model, platform("pixel4"), wanted);
  ASSERT_TRUE(session.ok()) << session.status().to_string();
  const std::vector<HostTensor> inputs = {ramp(model->inputs()[0])};
  std::vector<HostTensor> outputs;
  ASSERT_TRUE((*session)->run(inputs, &outputs).ok());
  const ReferenceTensor expected = reference(model->graph(), inputs)[model->graph().outputs()[0]];
  for (int64_t i = 0; i < outputs[0].size(); ++i) {
    EXPECT_FLOAT_EQ(outputs[0].data<float>()[i], static_cast<float>(expected.values[i]));
  }
}

// Microseconds of 60 inferences, of which the GPU slows down after the 20th.
std::vector<double> throttled(bool adapt, Adaptation* adaptation) {
  const StatusOr<Model> model = Model::load("zoo:tiny_inception");
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  const std::shared_ptr<SimulatedPlatform> phone = platform("pixel4");
  phone->world().throttle_after(20, {.cpu = 1, .gpu = 0.4});
  SessionOptions wanted = options("joint");
  wanted.adapt = adapt;
  const auto session = Session::create(*model, phone, wanted);
  EXPECT_TRUE(session.ok()) << session.status().to_string();
  const std::vector<HostTensor> inputs = {ramp(model->inputs()[0])};
  std::vector<HostTensor> outputs;
  std::vector<double> us;
  for (int run = 0; run < 60; ++run) {
    const Status done = (*session)->run(inputs, &outputs);
    EXPECT_TRUE(done.ok()) << done.to_string();
    us.push_back((*session)->last_run_us());
  }
  EXPECT_TRUE(check_schedule(model->graph(), (*session)->schedule()).ok());
  *adaptation = (*session)->adaptation();
  return us;
}

double mean(const std::vector<double>& us, size_t begin, size_t end) {
  return std::accumulate(us.begin() + begin, us.begin() + end, 0.0) /
         static_cast<double>(end - begin);
}

TEST(SimulatedSession, AdaptsToAChipThatThrottles) {
  Adaptation none;
  const std::vector<double> as_it_is = throttled(false, &none);
  EXPECT_EQ(none.recorded, 0);
  const double cool = mean(as_it_is, 0, 20);
  const double warm = mean(as_it_is, 20, 60);
  EXPECT_GT(warm, 1.5 * cool);

  Adaptation adaptation;
  const std::vector<double> adapted = throttled(true, &adaptation);
  EXPECT_GE(adaptation.changed, 1);
  EXPECT_GT(adaptation.slowdown.back(), 1.5);  // the GPU
  // The same plan and speed at first; corrections of predictions come before the chip throttles,
  // too.
  EXPECT_NEAR(mean(adapted, 0, 2) / mean(as_it_is, 0, 2), 1, 0.1);
  EXPECT_LT(mean(adapted, 50, 60), 0.95 * warm);

  Adaptation again;
  EXPECT_EQ(throttled(true, &again), adapted);  // on the simulated clock
}

TEST(SimulatedSession, DoesNotAdaptASingleLane) {
  const StatusOr<Model> model = Model::load("zoo:tiny_conv");
  ASSERT_TRUE(model.ok());
  SessionOptions wanted = options("gpu");
  wanted.adapt = true;
  EXPECT_EQ(Session::create(*model, platform("pixel4"), wanted).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(SimulatedProfile, IsWhatPredictorsLearnFrom) {
  const std::shared_ptr<SimulatedPlatform> phone = platform("pixel4");
  const auto crew = LaneCrew::of(phone);
  ASSERT_TRUE(crew.ok());
  const StatusOr<Model> model = Model::load("zoo:tiny_bottleneck");
  ASSERT_TRUE(model.ok());
  Sampler sampler(SamplerOptions{});
  sampler.add_network("tiny_bottleneck", model->graph());
  std::vector<Sample> samples = sampler.samples();
  samples.resize(std::min<size_t>(samples.size(), 40));
  const std::string path = testing::TempDir() + "simulated_profile.sqlite";
  std::remove(path.c_str());
  auto store = MeasurementStore::open(path, {phone->fingerprint(), "test", "{}"});
  ASSERT_TRUE(store.ok()) << store.status().to_string();
  const auto outcome = profile(samples, **crew, Topology{}, *store, {});
  ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  EXPECT_TRUE(outcome->complete);
  EXPECT_GT(outcome->rows, 100);
  const auto rows = store->rows();
  ASSERT_TRUE(rows.ok());
  int loaded = 0;
  for (const Measurement& row : *rows) {
    EXPECT_GT(row.median_us, 0) << row.key;
    EXPECT_TRUE(row.implementation.starts_with("sim_")) << row.implementation;
    const auto slice = predict::parse_slice_case(row.slice_case);
    ASSERT_TRUE(slice.ok()) << slice.status().to_string();
    EXPECT_EQ(slice->lane.kind, "simulated");
    loaded += row.load != "none" ? 1 : 0;
  }
  const auto data = read_training_data(*store);
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  EXPECT_GT(data->samples.size(), 100u);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tandem
