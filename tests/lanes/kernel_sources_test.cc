// The OpenCL C of every kernel variant that the operator table takes, through a compiler other than
// the device's: what one driver lets pass, another refuses. Skipped where there is no clang.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "fmt/format.h"
#include "lane/opencl/embedded_kernels.h"
#include "lane/opencl/kernel_plan.h"
#include "tests/support/operator_table.h"

namespace tandem::testing {
namespace {

std::string clang() {
  for (const char* name : {"clang", "clang-15", "clang-14"}) {
    if (std::system(fmt::format("{} --version > /dev/null 2>&1", name).c_str()) == 0) return name;
  }
  return {};
}

struct Variant {
  std::string source;
  std::string options;

  auto operator<=>(const Variant&) const = default;
};

// Of all cases, and of random ones, for both kinds of devices.
std::set<Variant> variants(bool single_item_groups) {
  std::set<Variant> found;
  std::vector<OperatorCase> cases = operator_table();
  for (uint64_t seed = 0; seed < 200; ++seed) cases.push_back(random_case(seed));
  for (const OperatorCase& c : cases) {
    const StatusOr<BuiltCase> built = build(c, 1);
    EXPECT_TRUE(built.ok()) << built.status().to_string();
    if (!built.ok()) continue;
    TensorBindings bindings;
    for (const Tensor& tensor : built->graph.tensors()) {
      bindings.views.push_back(view_of(tensor, nullptr));
    }
    for (const int compute_units : {1, 128}) {
      opencl::DeviceTraits traits;
      traits.single_item_groups = single_item_groups;
      traits.compute_units = compute_units;
      const auto plan = opencl::plan_slice(built->graph, bindings, {0, kNone, 0, 0}, traits);
      EXPECT_TRUE(plan.ok()) << plan.status().to_string();
      if (!plan.ok()) continue;
      for (const opencl::KernelPlan& kernel : plan->kernels) {
        std::string source;
        for (const std::string& file : kernel.files) {
          source.append(embedded_kernels().at(file)).append("\n");
        }
        found.insert({source, kernel.options});
      }
    }
  }
  return found;
}

// For an NVIDIA GPU's kind of target: without generic addresses, doubles or atomics.
void compile_all(bool single_item_groups, const char* standard) {
  const std::string compiler = clang();
  if (compiler.empty()) GTEST_SKIP() << "no clang";
  const std::filesystem::path folder(::testing::TempDir());
  const std::string source = (folder / fmt::format("tandem_{}.cl", standard)).string();
  const std::string log = source + ".log";
  const std::set<Variant> all = variants(single_item_groups);
  EXPECT_GT(all.size(), 20u);
  for (const Variant& variant : all) {
    std::ofstream(source) << variant.source;
    const int code = std::system(
        fmt::format("{} -x cl -cl-std={} -target nvptx64-nvidia-nvcl -Wall -Wno-unused-function "
                    "-Werror -fsyntax-only {} {} > {} 2>&1",
                    compiler, standard, variant.options, source, log)
            .c_str());
    std::stringstream said;
    said << std::ifstream(log).rdbuf();
    ASSERT_EQ(code, 0) << variant.options << "\n" << said.str();
  }
}

TEST(KernelSources, ManyItemsCompileElsewhere12) { compile_all(false, "CL1.2"); }
TEST(KernelSources, ManyItemsCompileElsewhere30) { compile_all(false, "CL3.0"); }
TEST(KernelSources, SingleItemsCompileElsewhere12) { compile_all(true, "CL1.2"); }

}  // namespace
}  // namespace tandem::testing
