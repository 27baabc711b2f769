#include "support/write_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

namespace tandem {
namespace {

class WriteFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) / (std::string("write_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::filesystem::path folder_;
};

TEST_F(WriteFileTest, FollowsALinkToAFile) {
  std::ofstream(folder_ / "file") << "old";
  std::filesystem::create_symlink("file", folder_ / "link");
  ASSERT_TRUE(write_file(folder_ / "link", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "file"), "new");
}

TEST_F(WriteFileTest, WritesToAPipeInsteadOfReplacingIt) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), S_IRWXU), 0);
  auto reader = std::async(std::launch::async, [&] { return read(pipe); });
  const Status written = write_file(pipe, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  ASSERT_TRUE(written.ok()) << written.message();
  EXPECT_EQ(reader.get(), "through");
}

// No room on the disk, for which a limit on the size of files stands in: the old file stays, and
// nothing is left of the new one.
TEST_F(WriteFileTest, AFullDiskLeavesTheOldFile) {
  ASSERT_TRUE(write_file(folder_ / "file", "old").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 1000;
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status written = write_file(folder_ / "file", std::string(100'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(written.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(written.message().find("cannot write"), std::string::npos);
  EXPECT_EQ(read(folder_ / "file"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(WriteFileTest, AFolderIsAnError) {
  const Status written = write_file(folder_, "x");
  EXPECT_EQ(written.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(written.message().find(folder_.string()), std::string::npos);
}

}  // namespace
}  // namespace tandem
