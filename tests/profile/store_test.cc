#include "profile/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace tandem {
namespace {

using ::testing::HasSubstr;

Measurement row(int number) {
  Measurement row;
  row.key = "key " + std::to_string(number);
  row.family = number % 2 ? "linear" : "conv_3x3";
  row.op = "linear, \"quoted\" [4,64]";
  row.slice = "1 0:32";
  row.networks = "resnet18,vgg16";
  row.lane = "cpu";
  row.threads = 2;
  row.implementation = "loops";
  row.load = number % 3 ? "none" : "memory";
  row.repeated = number % 2 == 0;
  row.median_us = 10.5 + number;
  row.low_us = 10.25 + number;
  row.high_us = 11.125 + number;
  row.samples = 7;
  row.attempts = 2;
  row.disturbed = number % 5 == 0;
  row.alone_us = 9.75;
  row.probe_gflops = 95.5;
  row.probe_gbps = 11.25;
  row.unix_time = 1.7e9 + number;
  row.slice_case = "{}";
  return row;
}

std::vector<std::string> values(const Measurement& row) {
  std::vector<std::string> all = measurement_values(row);
  all.push_back(row.key);
  all.push_back(row.slice_case);
  return all;
}

class StoreTest : public ::testing::Test {
 protected:
  StoreTest()
      : dir_(std::filesystem::path(::testing::TempDir()) /
             ("tandem_store_" +
              std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))),
        path_((dir_ / "rows.sqlite").string()) {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  ~StoreTest() override { std::filesystem::remove_all(dir_); }

  MeasurementStore open() {
    StatusOr<MeasurementStore> store = MeasurementStore::open(path_, identity_);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }
  std::string refusal() {
    const StatusOr<MeasurementStore> store = MeasurementStore::open(path_, identity_);
    EXPECT_FALSE(store.ok());
    EXPECT_THAT(store.status().message(), HasSubstr(path_));
    return store.status().message();
  }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }

  const std::filesystem::path dir_;
  const std::string path_;
  StoreIdentity identity_{"this machine", "engine 1", "{}"};
};

TEST_F(StoreTest, KeepsRowsAcrossProcesses) {
  {
    MeasurementStore store = open();
    ASSERT_TRUE(store.add({row(1), row(2), row(3)}).ok());
  }
  MeasurementStore store = open();
  ASSERT_TRUE(store.add({row(4)}).ok());
  const std::vector<Measurement> rows = store.rows().value();
  ASSERT_EQ(rows.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values(rows[i]), values(row(i + 1)));
  EXPECT_EQ(measurement_columns().size(), measurement_values(row(1)).size());
}

TEST_F(StoreTest, AKeyHasOneRow) {
  MeasurementStore store = open();
  ASSERT_TRUE(store.add({row(1), row(2)}).ok());
  Measurement again = row(1);
  again.median_us = 3;
  again.attempts = 3;
  again.disturbed = true;
  ASSERT_TRUE(store.add({again}).ok());
  const std::vector<Measurement> rows = store.rows().value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(values(rows[0]), values(again));
  const auto keys = store.keys().value();
  EXPECT_EQ(keys.at("key 1").attempts, 3);
  EXPECT_TRUE(keys.at("key 1").disturbed);
  EXPECT_FALSE(keys.at("key 2").disturbed);
}

TEST_F(StoreTest, CountsWhatIsThere) {
  MeasurementStore store = open();
  std::vector<Measurement> rows;
  std::map<std::string, int> expected;
  for (int i = 0; i < 30; ++i) {
    rows.push_back(row(i));
    ++expected[rows.back().family + rows.back().load];
  }
  ASSERT_TRUE(store.add(rows).ok());
  int64_t disturbed = 0;
  const std::vector<StoreCount> counts = store.counts().value();
  EXPECT_EQ(counts.size(), expected.size());
  for (const StoreCount& count : counts) {
    EXPECT_EQ(count.rows, expected[count.family + count.load]);
    EXPECT_GT(count.median_spread, 0.875 / 40.5 - 1e-9);
    EXPECT_LT(count.median_spread, 0.875 / 10.5 + 1e-9);
    disturbed += count.disturbed;
  }
  EXPECT_EQ(disturbed, 6);
}

TEST_F(StoreTest, EnginesDoNotShareRows) {
  {
    MeasurementStore store = open();
    ASSERT_TRUE(store.add({row(1), row(2)}).ok());
  }
  identity_.engine = "engine 2";
  MeasurementStore store = open();
  EXPECT_TRUE(store.rows().value().empty());
  EXPECT_EQ(store.rows_of_other_engines().value(), 2);
  ASSERT_TRUE(store.add({row(1)}).ok());
  const MeasurementStore reader = MeasurementStore::open_to_read(path_).value();
  EXPECT_EQ(reader.identity().engine, "engine 2");
  EXPECT_EQ(reader.identity().platform, "this machine");
  EXPECT_EQ(reader.rows().value().size(), 1u);
}

TEST_F(StoreTest, AnotherPlatformsFileIsRefused) {
  { ASSERT_TRUE(open().add({row(1)}).ok()); }
  identity_.platform = "another machine";
  EXPECT_THAT(refusal(), HasSubstr("this machine"));
}

// A process that is killed at any moment loses nothing that add() has confirmed, and one that goes
// on doubles nothing.
TEST_F(StoreTest, KilledProcessesLoseNothing) {
  constexpr int kProcesses = 4;
  int confirmed = 0;
  for (int process = 0; process < kProcesses; ++process) {
    int channel[2];
    ASSERT_EQ(pipe(channel), 0);
    const pid_t child = fork();
    if (child == 0) {
      StatusOr<MeasurementStore> store = MeasurementStore::open(path_, identity_);
      if (!store.ok()) _exit(1);
      const auto known = store->keys();
      if (!known.ok()) _exit(1);
      for (int i = 0;; ++i) {
        if (known->contains(row(i).key)) continue;
        if (!store->add({row(i)}).ok()) _exit(1);
        if (write(channel[1], "+", 1) != 1) _exit(1);
      }
    }
    close(channel[1]);
    constexpr int kRows = 50;
    char byte = 0;
    for (int i = 0; i < kRows; ++i) {
      ASSERT_EQ(read(channel[0], &byte, 1), 1);
      ++confirmed;
    }
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    while (read(channel[0], &byte, 1) == 1) ++confirmed;
    close(channel[0]);
  }
  const std::vector<Measurement> rows = open().rows().value();
  // One row a process may have been written without being confirmed.
  EXPECT_GE(static_cast<int>(rows.size()), confirmed);
  EXPECT_LE(static_cast<int>(rows.size()), confirmed + kProcesses);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(values(rows[i]), values(row(static_cast<int>(i))));
  }
}

TEST_F(StoreTest, RefusesWhatIsNoDatabase) {
  std::ofstream(path_) << "a text that somebody needs";
  EXPECT_THAT(refusal(), HasSubstr("no SQLite database"));
  EXPECT_EQ(content(), "a text that somebody needs");
}

TEST_F(StoreTest, RefusesDamagedFiles) {
  {
    MeasurementStore store = open();
    std::vector<Measurement> rows;
    for (int i = 0; i < 400; ++i) rows.push_back(row(i));
    ASSERT_TRUE(store.add(rows).ok());
  }
  std::string bytes = content();
  ASSERT_GT(bytes.size(), 40'000u);
  for (size_t i = 20'000; i < 30'000; ++i) bytes[i] = '\x5a';
  std::ofstream(path_, std::ios::binary) << bytes;
  EXPECT_THAT(refusal(), HasSubstr("damaged"));
  EXPECT_EQ(content(), bytes);
  EXPECT_FALSE(MeasurementStore::open_to_read(path_).ok());
}

TEST_F(StoreTest, RefusesTruncatedFiles) {
  {
    MeasurementStore store = open();
    std::vector<Measurement> rows;
    for (int i = 0; i < 400; ++i) rows.push_back(row(i));
    ASSERT_TRUE(store.add(rows).ok());
  }
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  const std::string bytes = content();
  EXPECT_THAT(refusal(), HasSubstr("damaged"));
  EXPECT_EQ(content(), bytes);
}

TEST_F(StoreTest, RefusesOtherProgramsDatabases) {
  execute("CREATE TABLE addresses(name TEXT)");
  const std::string bytes = content();
  EXPECT_THAT(refusal(), HasSubstr("another program"));
  EXPECT_EQ(content(), bytes);
}

TEST_F(StoreTest, RefusesOtherSchemas) {
  { ASSERT_TRUE(open().add({row(1)}).ok()); }
  execute("PRAGMA user_version = 99");
  EXPECT_THAT(refusal(), HasSubstr("schema 99"));
}

TEST_F(StoreTest, RefusesLockedFiles) {
  { ASSERT_TRUE(open().add({row(1)}).ok()); }
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_THAT(refusal(), HasSubstr("locked"));
  sqlite3_close(other);
  EXPECT_EQ(open().rows().value().size(), 1u);
}

TEST_F(StoreTest, SaysThatThereIsNothingToRead) {
  const StatusOr<MeasurementStore> store = MeasurementStore::open_to_read(path_);
  EXPECT_EQ(store.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(store.status().message(), HasSubstr("tandem profile"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(StoreTest, SaysThatAFolderCannotBeWrittenTo) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may write anywhere";
  std::filesystem::permissions(
      dir_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  refusal();
  std::filesystem::permissions(dir_, std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace tandem
