// The program cache: hits, and everything that may be wrong with a file.
#include "lane/opencl/program_cache.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/digest.h"
#include "support/write_file.h"
#include "tests/lane/opencl/test_lane.h"

namespace tandem::opencl {
namespace {

namespace fs = std::filesystem;

constexpr char kSource[] = "__kernel void one(__global int* x) { x[0] = NUMBER; }";

class ProgramCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(test_lane(), nullptr);
    auto device = open_device("", test_lane()->info().cores);
    ASSERT_TRUE(device.ok());
    device_ = *device;
    context_ = Context(clCreateContext(nullptr, 1, &device_.id, nullptr, nullptr, nullptr));
    directory_ = fs::temp_directory_path() /
                 ("tandem_cache_test_" + std::to_string(getpid()) + "_" +
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(directory_);
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  // A start of the engine: a cache of its own over the same folder.
  struct Start {
    Status status;
    ProgramCacheStats stats;
    std::vector<std::string> warnings;
  };
  Start start(const std::string& options = "-DNUMBER=7") {
    ProgramCache cache(context_.get(), device_, directory_.string());
    const auto program = cache.program_from_source("one.cl", kSource, options);
    if (program.ok()) {
      EXPECT_EQ(run(*program), 7);
    }
    return {program.status(), cache.stats(), cache.warnings()};
  }

  int run(cl_program program) {
    Kernel kernel(clCreateKernel(program, "one", nullptr));
    Queue queue(clCreateCommandQueueWithProperties(context_.get(), device_.id, nullptr, nullptr));
    auto* x = static_cast<int*>(
        clSVMAlloc(context_.get(), CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 64));
    const size_t one = 1;
    clSetKernelArgSVMPointer(kernel.get(), 0, x);
    clEnqueueNDRangeKernel(queue.get(), kernel.get(), 1, nullptr, &one, &one, 0, nullptr, nullptr);
    clFinish(queue.get());
    const int value = *x;
    clSVMFree(context_.get(), x);
    return value;
  }

  fs::path only_file() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(directory_)) files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }

  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Device device_;
  Context context_;
  fs::path directory_;
};

TEST_F(ProgramCacheTest, TheSecondStartCompilesNothing) {
  const Start first = start();
  ASSERT_TRUE(first.status.ok()) << first.status.to_string();
  EXPECT_EQ(first.stats.hits, 0);
  EXPECT_EQ(first.stats.misses, 1);
  EXPECT_THAT(first.warnings, ::testing::IsEmpty());
  const Start second = start();
  ASSERT_TRUE(second.status.ok());
  EXPECT_EQ(second.stats.hits, 1);
  EXPECT_EQ(second.stats.misses, 0);
  EXPECT_THAT(second.warnings, ::testing::IsEmpty());
}

TEST_F(ProgramCacheTest, OtherOptionsAreAnotherProgram) {
  ASSERT_TRUE(start().status.ok());
  EXPECT_EQ(start("-DNUMBER=6+1").stats.misses, 1);
}

TEST_F(ProgramCacheTest, AProgramIsKeptInMemoryToo) {
  ProgramCache cache(context_.get(), device_, "none");
  const auto a = cache.program_from_source("one.cl", kSource, "-DNUMBER=7");
  const auto b = cache.program_from_source("one.cl", kSource, "-DNUMBER=7");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(cache.stats().misses, 1);
}

TEST_F(ProgramCacheTest, DamagedFilesCostAWarningAndACompilation) {
  ASSERT_TRUE(start().status.ok());
  const fs::path path = only_file();
  const std::string whole = read(path);
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 0x10;
  for (const std::string& damaged : {std::string(), std::string("garbage"),
                                     whole.substr(0, whole.size() / 2), flipped, whole + "more"}) {
    ASSERT_TRUE(write_file(path.string(), damaged).ok());
    const Start after = start();
    ASSERT_TRUE(after.status.ok()) << after.status.to_string();
    EXPECT_EQ(after.stats.misses, 1);
    EXPECT_THAT(after.warnings, ::testing::ElementsAre(::testing::HasSubstr(path.string())));
    // And the file is sound again.
    EXPECT_EQ(start().stats.hits, 1);
  }
}

// Wherever it ends: inside each line of what precedes the binary, at its ends, inside the binary.
TEST_F(ProgramCacheTest, FilesCutShortAnywhere) {
  ASSERT_TRUE(start().status.ok());
  const fs::path path = only_file();
  const std::string whole = read(path);
  std::set<size_t> lengths = {0, 1, whole.size() - 1, whole.size() - 4096, whole.size() / 3};
  size_t end = 0;
  for (int line = 0; line < 5; ++line) {
    end = whole.find('\n', end) + 1;
    lengths.insert({end - 3, end - 1, end, end + 1});
  }
  for (const size_t length : lengths) {
    SCOPED_TRACE(length);
    ASSERT_TRUE(write_file(path.string(), whole.substr(0, length)).ok());
    const Start after = start();
    ASSERT_TRUE(after.status.ok()) << after.status.to_string();
    EXPECT_EQ(after.stats.misses, 1);
    EXPECT_EQ(after.warnings.size(), 1u);
    EXPECT_EQ(read(path).substr(0, end), whole.substr(0, end));
  }
}

TEST_F(ProgramCacheTest, AnyBitFlipped) {
  ASSERT_TRUE(start().status.ok());
  const fs::path path = only_file();
  for (int i = 0; i < 16; ++i) {
    std::string flipped = read(path);
    const size_t at = i < 8 ? 37 * i : flipped.size() - 1 - 997 * (i - 8);
    SCOPED_TRACE(at);
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (i % 8)));
    ASSERT_TRUE(write_file(path.string(), flipped).ok());
    const Start after = start();
    ASSERT_TRUE(after.status.ok()) << after.status.to_string();
    EXPECT_EQ(after.stats.misses, 1);
    EXPECT_EQ(after.warnings.size(), 1u);
  }
  EXPECT_EQ(start().stats.hits, 1);
}

// Sound as far as Tandem can see, and no program for the driver.
TEST_F(ProgramCacheTest, ABinaryThatTheDriverRefuses) {
  ASSERT_TRUE(start().status.ok());
  const fs::path path = only_file();
  const std::string whole = read(path);
  size_t end = 0;
  const size_t lines = 3 + 2;  // the key has three lines of its own
  for (size_t line = 0; line + 1 < lines; ++line) end = whole.find('\n', end) + 1;
  for (const std::string& binary : {std::string("no program at all"), std::string(5000, '\0')}) {
    const std::string header = whole.substr(0, end);
    const std::string file =
        header + std::to_string(binary.size()) + " " + digest(binary) + "\n" + binary;
    ASSERT_TRUE(write_file(path.string(), file).ok());
    const Start after = start();
    ASSERT_TRUE(after.status.ok()) << after.status.to_string();
    EXPECT_EQ(after.stats.misses, 1);
    EXPECT_THAT(after.warnings, ::testing::ElementsAre(::testing::HasSubstr("driver refuses")));
    EXPECT_EQ(start().stats.hits, 1);
  }
}

TEST_F(ProgramCacheTest, AFolderInPlaceOfTheFile) {
  ASSERT_TRUE(start().status.ok());
  const fs::path path = only_file();
  fs::remove(path);
  fs::create_directories(path / "occupied");
  const Start after = start();
  ASSERT_TRUE(after.status.ok()) << after.status.to_string();
  EXPECT_EQ(after.stats.misses, 1);
  EXPECT_THAT(after.warnings, ::testing::Contains(::testing::HasSubstr(path.string())));
  EXPECT_EQ(only_file(), path);
}

TEST_F(ProgramCacheTest, ManyWritersOfOneFile) {
  std::vector<std::thread> writers;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      const Start done = start();
      right += done.status.ok() && done.warnings.empty();
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(right, 4);
  EXPECT_EQ(only_file().extension(), ".clbin");
  EXPECT_EQ(start().stats.hits, 1);
}

TEST_F(ProgramCacheTest, AFileOfAnotherDeviceIsNotUsed) {
  ASSERT_TRUE(start().status.ok());
  const fs::path path = only_file();
  std::string foreign = read(path);
  const size_t at = foreign.find(device_.summary.driver);
  ASSERT_NE(at, std::string::npos);
  foreign[at] ^= 1;
  ASSERT_TRUE(write_file(path.string(), foreign).ok());
  const Start after = start();
  ASSERT_TRUE(after.status.ok());
  EXPECT_EQ(after.stats.misses, 1);
  EXPECT_EQ(after.warnings.size(), 1u);
}

TEST_F(ProgramCacheTest, AFolderOutOfReachCostsAWarning) {
  // A file where the folder should be: out of reach even for root.
  ASSERT_TRUE(write_file(directory_.string(), "not a folder").ok());
  const Start without = start();
  ASSERT_TRUE(without.status.ok()) << without.status.to_string();
  EXPECT_EQ(without.stats.misses, 1);
  EXPECT_THAT(without.warnings, ::testing::ElementsAre(::testing::HasSubstr(directory_.string())));
}

TEST_F(ProgramCacheTest, AReadOnlyFolderCostsAWarning) {
  // One that even root cannot write to.
  directory_ = "/proc/self/task";
  const Start without = start();
  directory_.clear();
  ASSERT_TRUE(without.status.ok()) << without.status.to_string();
  EXPECT_EQ(without.stats.misses, 1);
  EXPECT_THAT(without.warnings, ::testing::ElementsAre(::testing::HasSubstr("/proc/self/task")));
}

TEST_F(ProgramCacheTest, AFailedBuildSaysWhatTheCompilerSaid) {
  ProgramCache cache(context_.get(), device_, "none");
  const auto program =
      cache.program_from_source("bad.cl", "__kernel void bad() { undeclared = 1; }", "-DX=1");
  ASSERT_EQ(program.status().code(), StatusCode::kDeviceError);
  EXPECT_THAT(program.status().message(), ::testing::HasSubstr("bad.cl"));
  EXPECT_THAT(program.status().message(), ::testing::HasSubstr("undeclared"));
  EXPECT_THAT(program.status().message(), ::testing::HasSubstr("-DX=1"));
}

TEST_F(ProgramCacheTest, AMissingKernelFileIsNamed) {
  ProgramCache cache(context_.get(), device_, "none");
  EXPECT_THAT(cache.program({"missing.cl"}, "").status().message(),
              ::testing::HasSubstr("missing.cl"));
}

}  // namespace
}  // namespace tandem::opencl
