#include "predict/predictor_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/hash.h"
#include "tests/predict/slice_samples.h"

namespace tandem::predict {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class PredictorFileTest : public ::testing::Test {
 protected:
  // Of one family with a model of its own, of all, and of slowdowns.
  PredictorFileTest() : samples_(make_samples(60)) {
    const size_t alone = samples_.size();
    for (size_t i = 0; i < alone; ++i) {
      SliceSample loaded = samples_[i];
      loaded.slice.load = OtherLoad::kMemory;
      loaded.alone_us = loaded.us;
      loaded.us *= loaded.slice.weight_bytes > 5e5 ? 1.6 : 1.0;
      samples_.push_back(loaded);
    }
    std::vector<const SliceSample*> rows;
    for (const SliceSample& sample : samples_) {
      rows.push_back(&sample);
      asked_.push_back(&sample.slice);
    }
    predictor_ = SlicePredictor::fit(rows, shape_groups(samples_), {}).value();
    file_.made_for = {"this platform", "this engine"};
    file_.trained = "2026-11-30";
    file_.errors = "{\"of\": [1, 2]}";
    file_.lanes["gpu"] = {samples_[0].slice.lane, predictor_.to_texts(file_.made_for), 9.5};
    text_ = file_.to_text();
  }

  Regressor::Expectation expected() const { return {slice_feature_names(), file_.made_for, false}; }
  StatusOr<PredictorFile> parse(const std::string& text) const {
    return PredictorFile::parse(text, file_.made_for, false);
  }
  // The file as version 1 wrote it: JSON in JSON, without any bytes.
  json in_first_version() const {
    json models = json::object();
    for (const auto& [name, packed] : file_.lanes.at("gpu").models) {
      models[name] = Regressor::parse(packed.view(), expected()).value().to_text(file_.made_for);
    }
    return {{"schema_version", 1},
            {"slice_version", kSliceCaseVersion},
            {"platform", "this platform"},
            {"engine", "this engine"},
            {"trained", "2026-11-30"},
            {"errors", file_.errors},
            {"lanes",
             {{"gpu",
               {{"facts", to_json(samples_[0].slice.lane)},
                {"memory_gbps", 9.5},
                {"models", models}}}}}};
  }
  void expect_equal_to_the_trained(const PredictorFile& file) const {
    EXPECT_EQ(file.trained, file_.trained);
    EXPECT_EQ(file.errors, file_.errors);
    const LanePredictorTexts& lane = file.lanes.at("gpu");
    EXPECT_EQ(lane.facts, samples_[0].slice.lane);
    EXPECT_EQ(lane.memory_gbps, 9.5);
    const StatusOr<SlicePredictor> read = SlicePredictor::parse(lane.models, expected());
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_EQ(read->predict(asked_).value(), predictor_.predict(asked_).value());
    EXPECT_EQ(read->slowdowns(asked_).value(), predictor_.slowdowns(asked_).value());
  }
  void expect_damaged(const std::string& text, const std::string& what) const {
    const Status status = parse(text).status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << what;
    EXPECT_THAT(status.message(), HasSubstr("tandem train")) << what;
  }

  std::vector<SliceSample> samples_;
  std::vector<const SliceCase*> asked_;
  SlicePredictor predictor_;
  PredictorFile file_;
  std::string text_;
};

TEST_F(PredictorFileTest, KeepsEveryBit) {
  ASSERT_EQ(file_.lanes.at("gpu").models.size(), 3u);
  const StatusOr<PredictorFile> back = parse(text_);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  expect_equal_to_the_trained(*back);
  EXPECT_EQ(back->to_text(), text_);
}

TEST_F(PredictorFileTest, TheFirstVersionPredictsTheSame) {
  for (const int indentation : {-1, 1}) {
    const StatusOr<PredictorFile> back = parse(in_first_version().dump(indentation));
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    expect_equal_to_the_trained(*back);
  }
}

TEST_F(PredictorFileTest, OtherPlatformsAndEnginesAreRefused) {
  for (const std::string& text : {text_, in_first_version().dump()}) {
    for (const Fingerprints& other :
         {Fingerprints{"another", "this engine"}, Fingerprints{"this platform", "another"}}) {
      const StatusOr<PredictorFile> refused = PredictorFile::parse(text, other, false);
      EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
      EXPECT_THAT(refused.status().message(), HasSubstr("tandem train"));
      EXPECT_TRUE(PredictorFile::parse(text, other, true).ok());
    }
  }
}

TEST_F(PredictorFileTest, OtherVersionsAreRefused) {
  std::string later = text_;
  later.replace(later.find(" 2 "), 3, " 3 ");
  json earlier = in_first_version();
  earlier["schema_version"] = 0;
  json other_slices = in_first_version();
  other_slices["slice_version"] = kSliceCaseVersion + 1;
  for (const auto& [text, says] : {std::pair{later, std::string("version 3")},
                                   std::pair{earlier.dump(), std::string("schema_version is 0")},
                                   std::pair{other_slices.dump(), std::string("slice_version")}}) {
    const Status status = parse(text).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(says));
    EXPECT_THAT(status.message(), HasSubstr("tandem train"));
  }
}

TEST_F(PredictorFileTest, TruncatedFilesAreRefused) {
  const size_t header = text_.find('\n', text_.find('\n') + 1) + 1;
  for (size_t length = 0; length < text_.size(); length += length < header ? 7 : 1009) {
    expect_damaged(text_.substr(0, length), "the first " + std::to_string(length));
  }
  expect_damaged(text_.substr(0, text_.size() - 1), "all but one");
  expect_damaged(text_ + "x", "one too many");
  const std::string first = in_first_version().dump();
  expect_damaged(first.substr(0, first.size() / 2), "half of version 1");
}

TEST_F(PredictorFileTest, GarbledFilesAreRefused) {
  const size_t header = text_.find('\n', text_.find('\n') + 1) + 1;
  // What says which version it is comes first, and garbled is another version or none.
  const size_t version = std::string("tandem predictors 2 ").size();
  for (size_t at = version; at < text_.size(); at += at < header ? 1 : 499) {
    std::string garbled = text_;
    garbled[at] = static_cast<char>(garbled[at] ^ (1 << at % 8));
    expect_damaged(garbled, "byte " + std::to_string(at));
  }
  for (size_t at = 0; at < version; ++at) {
    std::string garbled = text_;
    garbled[at] = static_cast<char>(garbled[at] ^ 4);
    EXPECT_FALSE(parse(garbled).ok()) << at;
  }
}

// Right hashes do not help what cannot be: a model beyond the end, trees of fewer bytes.
TEST_F(PredictorFileTest, ModelsThatDoNotFitAreRefused) {
  const size_t header = text_.find('\n') + 1;
  const size_t end = text_.find('\n', header);
  json document = json::parse(text_.substr(header, end - header));
  const auto with_place = [&](const json& place) {
    json changed = document;
    changed["lanes"]["gpu"]["models"]["linear"] = place;
    const std::string line = changed.dump();
    return fmt::format("tandem predictors 2 {:016x}\n{}{}", hash_of(line), line, text_.substr(end));
  };
  const json place = document["lanes"]["gpu"]["models"]["linear"];
  EXPECT_TRUE(parse(with_place(place)).ok());
  const auto begin = place[0].get<size_t>();
  const auto bytes = place[1].get<size_t>();
  expect_damaged(with_place({text_.size(), 5}), "beyond the end");
  expect_damaged(with_place({begin, text_.size()}), "longer than the file");
  expect_damaged(with_place({-1, 5}), "before the beginning");
  for (const json& other : {json{begin, bytes - 4}, json{begin + 1, bytes - 1}, json{begin, 0}}) {
    const StatusOr<PredictorFile> file = parse(with_place(other));
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    EXPECT_EQ(SlicePredictor::parse(file->lanes.at("gpu").models, expected()).status().code(),
              StatusCode::kCorrupt);
  }
}

TEST_F(PredictorFileTest, AreFoundWhereEarlierVersionsSavedThem) {
  const std::filesystem::path home =
      std::filesystem::path(::testing::TempDir()) / "predictors_home";
  std::filesystem::remove_all(home);
  setenv("XDG_DATA_HOME", home.c_str(), 1);
  const std::string now = default_predictor_path("this platform");
  EXPECT_EQ(find_default_predictors("this platform"), now);
  EXPECT_EQ(PredictorFile::load(now, file_.made_for, false).status().code(), StatusCode::kNotFound);
  const std::string before = std::filesystem::path(now).replace_extension(".json");
  std::filesystem::create_directories(std::filesystem::path(before).parent_path());
  std::ofstream(before) << in_first_version().dump(1);
  EXPECT_EQ(find_default_predictors("this platform"), before);
  const StatusOr<PredictorFile> old = PredictorFile::load(before, file_.made_for, false);
  ASSERT_TRUE(old.ok()) << old.status().to_string();
  expect_equal_to_the_trained(*old);
  ASSERT_TRUE(file_.save(now).ok());
  EXPECT_EQ(find_default_predictors("this platform"), now);
  const StatusOr<PredictorFile> saved = PredictorFile::load(now, file_.made_for, false);
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  expect_equal_to_the_trained(*saved);
  unsetenv("XDG_DATA_HOME");
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace tandem::predict
