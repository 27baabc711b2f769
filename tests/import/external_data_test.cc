// Weights in files beside the model: which bytes are read, and which are not.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/import/model_builder.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCount = 8;  // floats in a tensor
constexpr int64_t kBytes = kCount * int64_t{sizeof(float)};

class ExternalDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tandem-external-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    outside_ = pattern;
    folder_ = outside_ / "model";
    ASSERT_TRUE(fs::create_directory(folder_));
  }
  void TearDown() override { fs::remove_all(outside_); }

  static std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static void set(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
    onnx::StringStringEntryProto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  static onnx::TensorProto* add_weights(ModelBuilder& model, const std::string& name,
                                        const std::string& location) {
    onnx::TensorProto* tensor = model.graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(kCount);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    set(*tensor, "location", location);
    return tensor;
  }
  // y = x + w, with w in the file `location`.
  static ModelBuilder addition(const std::string& location,
                               const std::vector<std::pair<std::string, std::string>>& more = {}) {
    ModelBuilder model;
    model.input("x", {kCount});
    onnx::TensorProto* tensor = add_weights(model, "w", location);
    for (const auto& [key, value] : more) set(*tensor, key, value);
    model.node("Add", {"x", "w"}, {"y"});
    model.output("y");
    return model;
  }
  StatusOr<Model> load(const ModelBuilder& model) const {
    write(folder_ / "model.onnx", model.bytes());
    return Model::load((folder_ / "model.onnx").string());
  }
  std::vector<double> sum_of(const ModelBuilder& model) const {
    const StatusOr<Model> loaded = load(model);
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    if (!loaded.ok()) return {};
    return run(*loaded, {HostTensor(DataType::kFloat32, {kCount})})[0].values;
  }
  void expect_refused(const std::string& location, StatusCode code, const std::string& why) const {
    SCOPED_TRACE(location);
    expect_error(load(addition(location)), code, {"tensor 'w'", why});
  }

  fs::path outside_;
  fs::path folder_;
  const std::vector<float> values_ = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> expected_ = {1, 2, 3, 4, 5, 6, 7, 8};
};

TEST_F(ExternalDataTest, WholeFilesAndRanges) {
  write(folder_ / "w.bin", bytes_of(values_));
  EXPECT_EQ(sum_of(addition("w.bin")), expected_);
  EXPECT_EQ(sum_of(addition("./w.bin")), expected_);
  fs::create_directory(folder_ / "inner");
  write(folder_ / "inner" / "w.bin", std::string(3, '#') + bytes_of(values_) + "###");
  EXPECT_EQ(sum_of(addition("inner/w.bin", {{"offset", "3"}})), expected_);
  EXPECT_EQ(sum_of(addition("inner/w.bin",
                            {{"offset", "3"}, {"length", std::to_string(kBytes)}, {"other", "?"}})),
            expected_);
}

TEST_F(ExternalDataTest, OtherTypesAndConstants) {
  const std::vector<uint16_t> halves = {0x3c00, 0xc000, 0x3800, 0, 0x7c00, 1, 0x8000, 0x3555};
  write(folder_ / "w.bin", {reinterpret_cast<const char*>(halves.data()), 16});
  ModelBuilder model = addition("w.bin");
  model.graph().mutable_initializer(0)->set_data_type(onnx::TensorProto::FLOAT16);
  const std::vector<double> sums = sum_of(model);
  ASSERT_EQ(sums.size(), 8u);
  EXPECT_EQ((std::vector<double>(sums.begin(), sums.begin() + 4)),
            (std::vector<double>{1, -2, 0.5, 0}));
  EXPECT_EQ(sums[4], HUGE_VAL);
  EXPECT_EQ(sums[5], std::ldexp(1, -24));
  EXPECT_EQ(sums[7], 1365.0 / 4096);

  ModelBuilder constant;
  constant.input("x", {kCount});
  onnx::NodeProto* node = constant.node("Constant", {}, {"c"}, {{"value", HostTensor()}});
  onnx::TensorProto* tensor = node->mutable_attribute(0)->mutable_t();
  tensor->Clear();
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(kCount);
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  set(*tensor, "location", "c.bin");
  constant.node("Add", {"x", "c"}, {"y"});
  constant.output("y");
  write(folder_ / "c.bin", bytes_of(values_));
  EXPECT_EQ(sum_of(constant), expected_);
}

TEST_F(ExternalDataTest, TheFolderIsThatOfTheModel) {
  write(folder_ / "w.bin", bytes_of(values_));
  write(folder_ / "model.onnx", addition("w.bin").bytes());
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  const StatusOr<Model> model = Model::load("model.onnx");
  fs::current_path(before);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  expect_error(Model::parse(addition("w.bin").bytes(), "bytes"), StatusCode::kUnsupported,
               {"'w'", "w.bin", "by its path"});
}

TEST_F(ExternalDataTest, NoFileOutsideTheFolderIsRead) {
  write(outside_ / "secret", bytes_of(values_));
  write(folder_ / "w.bin", bytes_of(values_));
  fs::create_directory(folder_ / "inner");
  fs::create_symlink(outside_ / "secret", folder_ / "link");
  fs::create_symlink("../secret", folder_ / "relative");
  fs::create_symlink(outside_, folder_ / "parent");
  fs::create_symlink("w.bin", folder_ / "inside");
  fs::create_symlink("loop", folder_ / "loop");
  for (const std::string& location :
       {(outside_ / "secret").string(), std::string("../secret"), std::string("inner/../../secret"),
        std::string("inner/../w.bin"), (folder_ / "w.bin").string(), std::string("/etc/passwd"),
        std::string("w.bin\0x", 7), std::string("..")}) {
    expect_refused(location, StatusCode::kCorrupt, "outside the model's folder");
  }
  for (const char* location : {"link", "relative", "parent/secret", "./parent/secret", "parent"}) {
    expect_refused(location, StatusCode::kCorrupt, "leads out of the model's folder");
  }
  EXPECT_EQ(sum_of(addition("inside")), expected_);
  for (const char* location :
       {"missing", "loop", "w.bin/x", "inner/missing", "~/w.bin", "%2e%2e"}) {
    expect_refused(location, StatusCode::kNotFound, std::string("'") + location + "'");
  }
  expect_refused("", StatusCode::kCorrupt, "in no file");
  expect_refused(std::string(5000, 'x'), StatusCode::kNotFound, "cannot be opened");
}

// A folder whose name is the beginning of another's does not contain what is in that.
TEST_F(ExternalDataTest, NeighboursOfTheFolderAreOutside) {
  fs::create_directory(outside_ / "model2");
  write(outside_ / "model2" / "w.bin", bytes_of(values_));
  fs::create_symlink(outside_ / "model2" / "w.bin", folder_ / "link");
  expect_refused("link", StatusCode::kCorrupt, "leads out of the model's folder");
}

TEST_F(ExternalDataTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_refused("pipe", StatusCode::kCorrupt,
                 "no regular file");  // and does not wait for a writer
  fs::create_directory(folder_ / "inner");
  expect_refused("inner", StatusCode::kCorrupt, "no regular file");
  expect_refused(".", StatusCode::kCorrupt, "no regular file");
}

TEST_F(ExternalDataTest, CutShortAnywhere) {
  const std::string whole = bytes_of(values_);
  for (size_t size = 0; size < whole.size(); ++size) {
    write(folder_ / "w.bin", whole.substr(0, size));
    expect_refused("w.bin", StatusCode::kCorrupt, "cut short");
  }
}

TEST_F(ExternalDataTest, WrongNumbers) {
  write(folder_ / "w.bin", bytes_of(values_));
  const auto expect_corrupt = [&](const std::string& key, const std::string& value,
                                  const std::string& why) {
    SCOPED_TRACE(key + " " + value);
    expect_error(load(addition("w.bin", {{key, value}})), StatusCode::kCorrupt,
                 {"tensor 'w'", why});
  };
  for (const char* offset : {"1", "32", "33", "9223372036854775807", "4611686018427387904"}) {
    expect_corrupt("offset", offset, "cut short");
  }
  for (const char* key : {"offset", "length"}) {
    for (const char* value : {"-1", "", " 0", "0 ", "0x0", "1e1", "9223372036854775808", "four"}) {
      expect_corrupt(key, value, key);
    }
  }
  for (const char* length : {"0", "31", "33", "9223372036854775807"}) {
    expect_corrupt("length", length, "extents ask for 32");
  }
  // Extents that ask for more memory than there is are refused by the file's size.
  ModelBuilder huge = addition("w.bin");
  huge.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 40);
  expect_error(load(huge), StatusCode::kCorrupt, {"tensor 'w'", "cut short"});
  huge.graph().mutable_initializer(0)->set_dims(0, -1);
  expect_error(load(huge), StatusCode::kCorrupt, {"tensor 'w'", "negative"});
}

TEST_F(ExternalDataTest, TensorsShareAllBytesOrNone) {
  write(folder_ / "w.bin", bytes_of(values_) + bytes_of(values_));
  const auto with_second = [&](int64_t offset) {
    ModelBuilder model = addition("w.bin", {{"offset", "16"}});
    set(*add_weights(model, "v", "w.bin"), "offset", std::to_string(offset));
    model.node("Add", {"x", "v"}, {"z"});
    model.output("z");
    return load(model);
  };
  EXPECT_TRUE(with_second(16).ok());
  for (const int64_t offset : {0, 15, 17, 32}) {
    expect_error(with_second(offset), StatusCode::kCorrupt, {"tensor 'v'", "'w.bin'", "'w'"});
  }
  write(folder_ / "w.bin", std::string(static_cast<size_t>(16 + 2 * kBytes), '\0'));
  EXPECT_TRUE(with_second(16 + kBytes).ok());
}

}  // namespace
}  // namespace tandem::testing
