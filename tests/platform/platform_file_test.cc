#include "platform/platform_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "platform/coefficients_file.h"
#include "platform/embedded_platforms.h"

namespace tandem {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A platform file in the tests' folder.
class File {
 public:
  explicit File(const std::string& text) : path_(testing::TempDir() + "platform_file_test.json") {
    std::ofstream(path_) << text;
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

json document(const std::string& name) {
  return json::parse(embedded_platforms().at(name + ".json"));
}

std::string error_of(const json& document) {
  const File file(document.dump());
  const StatusOr<sim::PlatformModel> model = load_platform(file.path());
  if (model.ok()) return "no error";
  EXPECT_THAT(model.status().message(), HasSubstr(file.path()));
  return model.status().message();
}

TEST(PlatformFile, AllBuiltInOnesLoadForEveryRuntime) {
  EXPECT_GE(platform_names().size(), 8u);
  for (const std::string& name : platform_names()) {
    for (const char* runtime : {"tflite", "ncnn", "mace"}) {
      PlatformFileOptions options;
      options.runtime = runtime;
      const StatusOr<sim::PlatformModel> model = load_platform(name, options);
      ASSERT_TRUE(model.ok()) << model.status().to_string();
      EXPECT_EQ(model->name, name);
      EXPECT_FALSE(model->lanes.empty());
      EXPECT_EQ(model->core_coefficients.size(), model->clusters.size());
    }
  }
}

TEST(PlatformFile, EveryFigureHasASource) {
  for (const std::string& name : platform_names()) {
    json file = document(name);
    file["memory"]["dram_gbps"].erase("source");
    EXPECT_THAT(error_of(file), HasSubstr("memory.dram_gbps.source is missing")) << name;
  }
}

TEST(PlatformFile, ErrorsNameFileAndField) {
  const json good = document("pixel4");
  EXPECT_EQ(error_of(good), "no error");
  json file = good;
  file["gpu"].erase("compute_units");
  EXPECT_THAT(error_of(file), HasSubstr("gpu.compute_units is missing"));
  file = good;
  file["gpu"]["colour"] = "red";
  EXPECT_THAT(error_of(file), HasSubstr("gpu.colour is not known"));
  file = good;
  file["cpu"]["clusters"][1]["mhz"]["value"] = "fast";
  EXPECT_THAT(error_of(file), HasSubstr("cpu.clusters[1].mhz.value must be a number"));
  file = good;
  file["memory"]["dram_gbps"]["value"] = 0;
  EXPECT_THAT(error_of(file), HasSubstr("memory.dram_gbps.value must be more than 0"));
  file = good;
  file["memory"]["dram_gbps"]["value"] = -3;
  EXPECT_THAT(error_of(file), HasSubstr("memory.dram_gbps.value is -3"));
  file = good;
  file["memory"]["dram_gbps"] = 34;
  EXPECT_THAT(error_of(file), HasSubstr("memory.dram_gbps must be an object"));
  file = good;
  file["gpu"]["compute_units"]["value"] = 2.5;
  EXPECT_THAT(error_of(file), HasSubstr("gpu.compute_units.value must be an integer"));
  file = good;
  file["gpu"]["family"] = "voodoo";
  EXPECT_THAT(error_of(file), HasSubstr("gpu.family is 'voodoo', and must be one of adreno, mali"));
  file = good;
  file["gpu"]["generation"] = "adreno-1xx";
  EXPECT_THAT(error_of(file), HasSubstr("GPU generation 'adreno-1xx'"));
  file = good;
  file["gpu"]["mhz"]["source"] = "HEARSAY";
  EXPECT_THAT(error_of(file), HasSubstr("gpu.mhz.source names 'HEARSAY'"));
  file = good;
  file["gpu"]["mhz"] = {{"value", 585}, {"source", "estimate"}};
  EXPECT_THAT(error_of(file), HasSubstr("gpu.mhz.estimate must be true"));
  file["gpu"]["mhz"]["estimate"] = true;
  EXPECT_THAT(error_of(file), HasSubstr("gpu.mhz.why is missing"));
  file = good;
  file["lanes"][0]["cores"] = "prime:2";
  EXPECT_THAT(error_of(file), HasSubstr("lanes[0]: 'prime:2': cluster prime has 1 to 1 cores"));
  file = good;
  file["lanes"].push_back({{"name", "more"}, {"cores", "big:1"}});
  EXPECT_THAT(error_of(file), HasSubstr("more cores of cluster 'big' than it has"));
  const File broken("{");
  EXPECT_THAT(load_platform(broken.path()).status().message(), HasSubstr("it is no JSON: line 1, column 2"));
}

TEST(PlatformFile, UnknownNamesListTheKnownOnes) {
  EXPECT_THAT(load_platform("pixel99").status().message(), HasSubstr("pixel4"));
  EXPECT_THAT(load_platform("calibration").status().message(), HasSubstr("no platform"));
  EXPECT_EQ(load_platform("no/such/file.json").status().code(), StatusCode::kNotFound);
}

TEST(PlatformFile, FiguresCanBeSet) {
  PlatformFileOptions options;
  options.set = {"gpu.compute_units=6", "cpu.clusters.big.mhz=2000"};
  const StatusOr<sim::PlatformModel> model = load_platform("pixel4", options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(model->gpu.compute_units, 6);
  EXPECT_EQ(model->clusters[1].mhz, 2000);
  EXPECT_EQ(model->clusters[1].steps_mhz.back(), 2000);
  for (const char* wrong : {"gpu.units=6", "gpu=3", "gpu.compute_units", "gpu.compute_units=many",
                            "cpu.clusters.huge.mhz=1"}) {
    options.set = {wrong};
    EXPECT_FALSE(load_platform("pixel4", options).ok()) << wrong;
  }
}

TEST(PlatformFile, LanesCanBeChosen) {
  PlatformFileOptions options;
  options.lanes = {"fast=big:2+prime", "gpu=gpu"};
  const StatusOr<sim::PlatformModel> model = load_platform("pixel4", options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  ASSERT_EQ(model->lanes.size(), 2u);
  EXPECT_EQ(model->lanes[0].cores, (std::vector<sim::CoreGroup>{{0, 1}, {1, 2}}));
  for (const char* wrong : {"big:2", "x=huge:1", "x=big:9", "x=big:0", "x=big:1+big:3"}) {
    options.lanes = {wrong};
    EXPECT_FALSE(load_platform("pixel4", options).ok()) << wrong;
  }
  options.lanes = {"gpu=gpu"};
  EXPECT_THAT(load_platform("raspberry_pi5", options).status().message(), HasSubstr("has no GPU"));
}

TEST(Coefficients, AreTheSameAsTextAndBack) {
  const StatusOr<sim::Coefficients> built_in = load_coefficients();
  ASSERT_TRUE(built_in.ok()) << built_in.status().to_string();
  const File file(to_text(*built_in));
  const StatusOr<sim::Coefficients> again = load_coefficients(file.path());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(to_text(*again), to_text(*built_in));
  json damaged = json::parse(to_text(*built_in));
  damaged["cores"]["cortex-a76"].erase("stream_gbps");
  const File bad(damaged.dump());
  EXPECT_THAT(load_coefficients(bad.path()).status().message(),
              HasSubstr("cores.cortex-a76.stream_gbps is missing"));
}

}  // namespace
}  // namespace tandem
