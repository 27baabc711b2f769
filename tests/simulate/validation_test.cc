#include "simulate/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "lane/sim/slice_time.h"
#include "platform/coefficients_file.h"
#include "platform/platform_file.h"
#include "simulate/fit.h"

namespace tandem::simulate {
namespace {

const Published& published() {
  static const StatusOr<Published> data = load_published(TANDEM_PUBLISHED);
  EXPECT_TRUE(data.ok()) << data.status().to_string();
  return *data;
}

TEST(Published, HalfIsHeldOutAsTheFileSays) {
  std::ifstream file(std::string(TANDEM_PUBLISHED) + "/held_out.txt");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) names.insert(line);
  int held_out = 0;
  for (const Entry& entry : published().entries) {
    const bool named = names.contains(std::string(to_string(entry.kind)) + " " + entry.workload) ||
                       names.contains(std::string(to_string(entry.kind)) + " " + entry.id);
    EXPECT_EQ(entry.held_out, named) << entry.id;
    held_out += entry.held_out ? 1 : 0;
  }
  const double share = held_out / static_cast<double>(published().entries.size());
  EXPECT_NEAR(share, 0.5, 0.02);
}

TEST(Published, MissingFilesAreNamed) {
  EXPECT_THAT(load_published("nowhere").status().message(),
              testing::HasSubstr("nowhere/phones_end_to_end.csv"));
}

// Of the kernels that the phones chose, which the file notes.
TEST(GpuRules, ExpectTheKernelsThatPhonesChose) {
  const StatusOr<Cases> cases = make_cases(published());
  ASSERT_TRUE(cases.ok()) << cases.status().to_string();
  int right = 0;
  int all = 0;
  for (const Case& each : cases->cases) {
    const Entry& entry = *each.entry;
    if (entry.kind != EntryKind::kOperator || !entry.note.starts_with("convolution_")) continue;
    const std::string name =
        sim::gpu_slice_time(cases->models[each.model], each.work).implementation.name;
    const bool winograd = entry.note.find("winograd") != std::string::npos;
    const bool grouped = entry.note.find("grouped") != std::string::npos;
    const bool same = winograd == (name == "sim_gpu_winograd_4x4_6x6") &&
                      grouped == (name == "sim_gpu_conv_grouped") &&
                      name != "sim_gpu_fully_connected";
    right += same ? 1 : 0;
    ++all;
  }
  EXPECT_GT(all, 2000);
  EXPECT_GT(right, 0.98 * all);
}

TEST(Validation, HeldOutErrorsAndRankingsAreWithinTheTargets) {
  const StatusOr<Cases> cases = make_cases(published());
  ASSERT_TRUE(cases.ok()) << cases.status().to_string();
  std::vector<Comparison> held_out;
  for (const Case& each : cases->cases) {
    if (each.entry->held_out) held_out.push_back({each.entry, cases->simulate_us(each)});
  }
  EXPECT_LE(summarize_errors(held_out).median, 0.20);
  EXPECT_GE(rank_cpu_and_gpu(held_out, false).share(), 0.90);
  EXPECT_GE(rank_cpu_and_gpu(held_out, true).share(), 0.90);
  EXPECT_GE(rank_platforms(held_out).share(), 0.90);
}

TEST(Validation, SummariesAndRankings) {
  Entry cpu{"a/p/big:1/n", EntryKind::kNetwork, "p", "r", "big:1", "n", 100, "", "", true};
  Entry slower = cpu;
  slower.lanes = "little:1";
  slower.value = 300;
  Entry gpu = cpu;
  gpu.lanes = "gpu";
  gpu.value = 50;
  const std::vector<Comparison> all = {{&cpu, 110}, {&slower, 150}, {&gpu, 120}};
  const ErrorSummary summary = summarize_errors(all);
  EXPECT_EQ(summary.entries, 3);
  EXPECT_NEAR(summary.median, 0.5, 1e-12);
  EXPECT_NEAR(summary.bias, 0.1, 1e-12);
  // The GPU was faster than both, and is simulated to be slower than one.
  EXPECT_EQ(rank_cpu_and_gpu(all, false).pairs, 2);
  EXPECT_EQ(rank_cpu_and_gpu(all, false).right, 1);
  EXPECT_EQ(rank_cpu_and_gpu(all, true).pairs, 1);
  EXPECT_EQ(rank_cpu_and_gpu(all, true).right, 0);
}

// Fits to times that the simulator itself made with other coefficients.
TEST(Fit, FindsWhatMadeTheTimesAndLooksAtNothingHeldOut) {
  Published data;
  StatusOr<sim::Coefficients> start = load_coefficients();
  ASSERT_TRUE(start.ok());
  sim::Coefficients truth = *start;
  truth.cores["cortex-a76"].gemm_efficiency *= 0.7;
  StatusOr<sim::PlatformModel> model = load_platform("pixel4");
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(sim::resolve(truth, "tflite", &*model).ok());
  for (int channels = 64; channels <= 512; channels += 64) {
    Entry entry;
    entry.kind = EntryKind::kOperator;
    entry.platform = "pixel4";
    entry.runtime = "tflite";
    entry.lanes = "big:1";
    const std::string c = std::to_string(channels);
    entry.workload = "conv:28:" + c + ":28:" + c + ":3:1:1";
    entry.value = sim::cpu_slice_time(*model, {{1, 1}}, *sim::parse_workload(entry.workload)).us;
    data.entries.push_back(entry);
    entry.value *= 1000;  // would spoil the fit
    entry.held_out = true;
    data.entries.push_back(entry);
  }
  const StatusOr<Fit> first = fit(data, *start, {}, [](int, double) {});
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_LT(first->after, 0.02);
  EXPECT_GT(first->before, 0.2);
  const StatusOr<Fit> again = fit(data, *start, {}, [](int, double) {});
  EXPECT_EQ(to_text(first->coefficients), to_text(again->coefficients));
  // What no entry depends on stays.
  EXPECT_EQ(first->coefficients.cores.at("exynos-m4").gemm_efficiency,
            start->cores.at("exynos-m4").gemm_efficiency);
}

}  // namespace
}  // namespace tandem::simulate
