#include "cli/bench_problems.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fmt/format.h"
#include "schedule/random_problem.h"
#include "support/random_numbers.h"
#include "support/read_file.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kFewestOperators = 5;
constexpr int kMostOperators = 60;

}  // namespace

void remove_contention(ModeProblem* problem) {
  for (ModeOperator& op : problem->operators) {
    for (Mode& mode : op.modes) {
      for (Part& part : mode.parts) part.contention = {};
    }
  }
}

StatusOr<std::vector<BenchProblem>> generated_problems(int count, uint64_t seed) {
  std::vector<BenchProblem> problems;
  RandomNumbers random(seed);
  for (int i = 0; i < count; ++i) {
    RandomProblemOptions options;
    options.family = graph_families()[i % graph_families().size()];
    options.lanes = static_cast<int>(random.integer(2, 4));
    options.operators =
        static_cast<int>(std::lround(random.ratio(kFewestOperators, kMostOperators)));
    options.max_modes = static_cast<int>(random.integer(4, 12));
    options.seed = seed * 10'000 + static_cast<uint64_t>(i);
    problems.push_back({"random", random_problem(options)});
  }
  return problems;
}

StatusOr<std::vector<BenchProblem>> problems_in(const std::string& folder,
                                                const std::string& kind) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".json") files.push_back(at->path());
  }
  if (error) return not_found(fmt::format("{}: {}", folder, error.message()));
  std::sort(files.begin(), files.end());
  std::vector<BenchProblem> problems;
  for (const fs::path& file : files) {
    TANDEM_ASSIGN_OR_RETURN(const std::string text, read_file(file.string()));
    StatusOr<ModeProblem> problem = mode_problem_from_json(text);
    if (!problem.ok()) {
      return Status(problem.status().code(), file.string() + ": " + problem.status().message());
    }
    problem->name = file.stem().string();
    remove_contention(&*problem);
    problems.push_back({kind, *std::move(problem)});
  }
  return problems;
}

std::string default_problem_folder() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = binary.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (fs::is_directory(folder / "bench/problems", error)) {
      return (folder / "bench/problems").string();
    }
  }
  return {};
}

}  // namespace tandem::cli
