#include "support/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(ReadFile, ReturnsEveryByte) {
  const std::string path = ::testing::TempDir() + "/tandem_read_file";
  for (const std::string& content : {std::string(), std::string("a\r\n\0b", 5)}) {
    std::ofstream(path, std::ios::binary) << content;
    const StatusOr<std::string> read = read_file(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, content);
  }
  std::filesystem::remove(path);
}

TEST(ReadFile, SaysWhatIsWrongWithWhichFile) {
  const Status missing = read_file("/nowhere/file").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("/nowhere/file: No such file"));
  const Status folder = read_file(::testing::TempDir()).status();
  EXPECT_EQ(folder.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(folder.message(), HasSubstr("folder"));
}

}  // namespace
}  // namespace tandem
