#include "support/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NpyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) / (std::string("npy_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "x.npy";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static HostTensor floats(Dims dims, const std::vector<float>& values) {
    HostTensor tensor;
    tensor.dims = std::move(dims);
    tensor.bytes.resize(values.size() * sizeof(float));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
  }
  // A version 1 file with this dictionary and so many zero bytes of data.
  void write_raw(const std::string& dictionary, size_t data_bytes) {
    std::ofstream file(path_, std::ios::binary);
    file << "\x93NUMPY\x01" << '\0' << static_cast<char>(dictionary.size()) << '\0' << dictionary
         << std::string(data_bytes, '\0');
  }
  Status read_status() { return read_npy(path_).status(); }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(NpyTest, RoundTripKeepsShapeTypeAndBytes) {
  const HostTensor tensor = floats({2, 1, 3}, {1, -2, 3.5, 0, 5e-20f, 6});
  ASSERT_TRUE(write_npy(path_, tensor).ok());
  const auto read = read_npy(path_);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->type, DataType::kFloat32);
  EXPECT_THAT(read->dims, ElementsAre(2, 1, 3));
  EXPECT_EQ(read->bytes, tensor.bytes);
}

TEST_F(NpyTest, RoundTripOfIntegersVectorsAndScalars) {
  HostTensor integers;
  integers.type = DataType::kInt64;
  integers.dims = {1};
  integers.bytes.resize(sizeof(int64_t));
  const int64_t value = -7;
  std::memcpy(integers.bytes.data(), &value, sizeof value);
  ASSERT_TRUE(write_npy(path_, integers).ok());
  const auto vector = read_npy(path_);
  ASSERT_TRUE(vector.ok()) << vector.status().to_string();
  EXPECT_EQ(vector->type, DataType::kInt64);
  EXPECT_THAT(vector->dims, ElementsAre(1));
  EXPECT_EQ(*vector->data<int64_t>(), -7);

  ASSERT_TRUE(write_npy(path_, floats({}, {42})).ok());
  const auto scalar = read_npy(path_);
  ASSERT_TRUE(scalar.ok()) << scalar.status().to_string();
  EXPECT_THAT(scalar->dims, IsEmpty());
  EXPECT_EQ(*scalar->data<float>(), 42);
}

TEST_F(NpyTest, DataIsAlignedAsNumpyPromises) {
  ASSERT_TRUE(write_npy(path_, floats({1}, {1})).ok());
  EXPECT_EQ(std::filesystem::file_size(path_) % 64, sizeof(float));
}

TEST_F(NpyTest, SaysWhatIsWrong) {
  EXPECT_THAT(read_status().message(), HasSubstr("No such file"));

  std::ofstream(path_) << "hello, this is text";
  EXPECT_THAT(read_status().message(), HasSubstr("not a .npy file"));

  write_raw("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 8);
  EXPECT_THAT(read_status().message(), HasSubstr("astype"));

  write_raw("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16);
  EXPECT_THAT(read_status().message(), HasSubstr("Fortran"));

  write_raw("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 12);
  EXPECT_THAT(read_status().message(), HasSubstr("needs 16 bytes of data, the file has 12"));

  write_raw("{'descr': '<f4', 'fortran_order': False, 'shape': (2, x), }", 16);
  EXPECT_THAT(read_status().message(), HasSubstr("malformed"));

  write_raw("{'descr': '<f4', 'shape': (2,), }", 8);
  EXPECT_THAT(read_status().message(), HasSubstr("lacks"));
}

TEST_F(NpyTest, AShapeThatOverflowsIsRefused) {
  write_raw("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0);
  EXPECT_EQ(read_status().code(), StatusCode::kCorrupt);
}

TEST_F(NpyTest, EveryTruncationIsAnError) {
  ASSERT_TRUE(write_npy(path_, floats({4}, {1, 2, 3, 4})).ok());
  const auto size = std::filesystem::file_size(path_);
  for (auto length = size; length-- > 0;) {
    std::filesystem::resize_file(path_, length);
    EXPECT_EQ(read_status().code(), StatusCode::kCorrupt) << length;
  }
}

TEST_F(NpyTest, AFailedWriteLeavesNothing) {
  std::filesystem::create_directory(folder_ / "taken");
  EXPECT_FALSE(write_npy(folder_ / "taken", floats({1}, {1})).ok());
  EXPECT_FALSE(write_npy(folder_ / "missing" / "x.npy", floats({1}, {1})).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace tandem
