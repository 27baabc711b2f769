// `tandem profile`: measures this machine's lanes, for `tandem train`.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "cli/conditions.h"
#include "cli/distinct_files.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lane/lane.h"
#include "platform/engine.h"
#include "platform/topology.h"
#include "predict/slice_case.h"
#include "profile/profiler.h"
#include "profile/sampler.h"
#include "profile/store.h"
#include "support/stopwatch.h"
#include "support/write_file.h"
#include "zoo/zoo.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct Flags {
  PlatformFlags platform;
  std::vector<std::string> lanes;
  double minutes = 10;
  std::vector<std::string> families;
  std::vector<std::string> models;
  std::string store;
  std::string export_format;
  std::string output;
  uint64_t seed = 1;
  bool status = false;
  bool json = false;
};

// --- what there is ---

StatusOr<MeasurementStore> open_to_read(const Flags& flags) {
  if (!flags.store.empty()) return MeasurementStore::open_to_read(flags.store);
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  TANDEM_ASSIGN_OR_RETURN(const std::string path,
                          MeasurementStore::default_path(platform->fingerprint()));
  return MeasurementStore::open_to_read(path);
}

json to_json(const std::vector<StoreCount>& counts) {
  json rows = json::array();
  for (const StoreCount& count : counts) {
    rows.push_back({{"family", count.family},
                    {"lane", count.lane},
                    {"load", count.load},
                    {"rows", count.rows},
                    {"disturbed", count.disturbed},
                    {"measured_again", count.measured_again},
                    {"median_spread", count.median_spread}});
  }
  return rows;
}

void print_counts(const std::vector<StoreCount>& counts) {
  fmt::print("{:14} {:10} {:8} {:>7} {:>9} {:>15} {:>14}\n", "family", "lane", "load", "rows",
             "disturbed", "measured again", "median spread");
  int64_t all = 0;
  for (const StoreCount& c : counts) {
    fmt::print("{:14} {:10} {:8} {:>7} {:>9} {:>15} {:>13.1f}%\n", c.family, c.lane, c.load, c.rows,
               c.disturbed, c.measured_again, 100 * c.median_spread);
    all += c.rows;
  }
  fmt::print("{} rows\n", all);
}

Status print_status(const Flags& flags) {
  TANDEM_ASSIGN_OR_RETURN(const MeasurementStore store, open_to_read(flags));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<StoreCount> counts, store.counts());
  TANDEM_ASSIGN_OR_RETURN(const int64_t others, store.rows_of_other_engines());
  const StoreIdentity& identity = store.identity();
  if (flags.json) {
    fmt::print("{}\n", json{{"store", store.path()},
                            {"platform", identity.platform},
                            {"engine", identity.engine},
                            {"lanes", json::parse(identity.lane_facts)},
                            {"rows", to_json(counts)},
                            {"rows_of_other_engines", others}}
                           .dump(2));
    return {};
  }
  fmt::print("{}\nplatform: {}\nengine: {}\n", store.path(), identity.platform, identity.engine);
  print_counts(counts);
  if (others > 0) fmt::print("and {} rows of other engines, which are not used\n", others);
  return {};
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty()) line += ",";
    line += csv_cell(cell);
  }
  return line + "\n";
}

// Measured columns first, then what predictors know of the slice, under a prefix since some names
// are the same.
Status export_csv(const Flags& flags) {
  TANDEM_RETURN_IF_ERROR(check_can_write({{"--output", flags.output}}));
  TANDEM_ASSIGN_OR_RETURN(const MeasurementStore store, open_to_read(flags));
  TANDEM_RETURN_IF_ERROR(check_distinct({{"the store", store.path()}, {"--output", flags.output}}));
  std::vector<std::string> header = measurement_columns();
  for (const std::string& column : predict::slice_case_columns())
    header.push_back("slice_" + column);
  std::string text = csv_line(header);
  Status status;
  TANDEM_RETURN_IF_ERROR(store.for_each([&](const Measurement& row) {
    std::vector<std::string> cells = measurement_values(row);
    const StatusOr<predict::SliceCase> slice = predict::parse_slice_case(row.slice_case);
    if (!slice.ok() && status.ok()) status = slice.status().with_context(store.path());
    if (!slice.ok()) return;
    for (std::string& value : slice_case_values(*slice)) cells.push_back(std::move(value));
    text += csv_line(cells);
  }));
  TANDEM_RETURN_IF_ERROR(status);
  if (!flags.output.empty()) return write_file(flags.output, text);
  fmt::print("{}", text);
  return {};
}

// --- what is measured ---

StatusOr<std::vector<predict::SliceFamily>> families_of(const Flags& flags) {
  std::vector<predict::SliceFamily> families;
  for (const std::string& name : flags.families) {
    TANDEM_ASSIGN_OR_RETURN(families.emplace_back(), predict::parse_slice_family(name));
  }
  return families;
}

StatusOr<std::vector<int>> lanes_of(const Flags& flags, const Platform& platform) {
  const std::vector<std::string> names = platform.lane_names();
  std::vector<int> lanes;
  for (const std::string& name : flags.lanes) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return not_found(
          fmt::format("there is no lane '{}'; there are: {}", name, fmt::join(names, ", ")));
    }
    lanes.push_back(static_cast<int>(found - names.begin()));
  }
  return lanes;
}

// The published networks of the zoo, or those that were given.
StatusOr<std::vector<Sample>> make_samples(const Flags& flags) {
  SamplerOptions options;
  options.seed = flags.seed;
  TANDEM_ASSIGN_OR_RETURN(options.families, families_of(flags));
  Sampler sampler(options);
  std::vector<std::string> models = flags.models;
  for (const zoo::Entry& entry : zoo::list()) {
    if (flags.models.empty() && !entry.name.starts_with("tiny_")) models.push_back(entry.name);
  }
  Progress progress("reading operators of networks", static_cast<int>(models.size()));
  for (const std::string& name : models) {
    std::error_code error;
    const bool file = name.find(':') != std::string::npos || std::filesystem::exists(name, error);
    TANDEM_ASSIGN_OR_RETURN(const Model model, Model::load(file ? name : "zoo:" + name));
    constexpr std::string_view kZoo = "zoo:";
    const std::string plain = name.starts_with(kZoo) ? name.substr(kZoo.size()) : name;
    sampler.add_network(std::filesystem::path(plain).stem().string(), model.graph());
    progress.step();
  }
  std::vector<Sample> samples = sampler.samples();
  if (samples.empty()) {
    return invalid_argument("the networks have no operator of these families");
  }
  return samples;
}

void print_outcome(const Flags& flags, const ProfilerOutcome& outcome,
                   const std::vector<StoreCount>& counts, const std::string& path,
                   const json& conditions) {
  if (flags.json) {
    fmt::print("{}\n", json{{"store", path},
                            {"seconds", outcome.seconds},
                            {"compile_seconds", outcome.compile_seconds},
                            {"measured", outcome.rows},
                            {"disturbed", outcome.disturbed},
                            {"measured_again", outcome.measured_again},
                            {"skipped", outcome.skipped},
                            {"complete", outcome.complete},
                            {"interrupted", outcome.stopped},
                            {"rows", to_json(counts)},
                            {"conditions", conditions}}
                           .dump(2));
    return;
  }
  print_counts(counts);
  fmt::print(
      "{} of them measured now, in {:.1f} s; {} of these again, since they spread too wide "
      "or the machine was busy; {} cannot be trusted\nstore: {}\n",
      outcome.rows, outcome.seconds, outcome.measured_again, outcome.disturbed, path);
  if (outcome.skipped > 0) {
    fmt::print("{} operators were left out, since they take more memory than there is\n",
               outcome.skipped);
  }
  if (outcome.complete) fmt::print("there is nothing left to measure\n");
}

Status measure(const Flags& flags) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  const Conditions conditions;
  ProfilerOptions options;
  TANDEM_ASSIGN_OR_RETURN(options.lanes, lanes_of(flags, *platform));
  TANDEM_ASSIGN_OR_RETURN(const Topology topology, detect_topology());
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));

  StoreIdentity identity{platform->fingerprint(), engine_fingerprint(),
                         lane_facts_json(*crew, topology)};
  std::string path = flags.store;
  if (path.empty()) {
    TANDEM_ASSIGN_OR_RETURN(path, MeasurementStore::default_path(identity.platform));
  }
  TANDEM_ASSIGN_OR_RETURN(MeasurementStore store, MeasurementStore::open(path, identity));
  TANDEM_ASSIGN_OR_RETURN(const int64_t others, store.rows_of_other_engines());
  if (others > 0) {
    fmt::print(stderr,
               "tandem: {} rows in {} are of other engines, and will not be used with this one\n",
               others, path);
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Sample> samples, make_samples(flags));

  const InterruptWatch interrupt;
  options.seconds = 60 * flags.minutes;
  options.seed = flags.seed;
  options.stop = [] { return InterruptWatch::seen(); };
  ProfilerOutcome outcome;
  {
    Progress progress("profiling");
    options.on_progress = [&progress](double share) { progress.set_share(share); };
    constexpr std::chrono::seconds kPatience{60};
    TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                            LaneCrew::acquire(crew, Clock::now() + kPatience));
    TANDEM_ASSIGN_OR_RETURN(outcome, profile(samples, *crew, topology, store, options));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<StoreCount> counts, store.counts());
  print_outcome(flags, outcome, counts, path, conditions.to_json(*platform));
  if (outcome.stopped) {
    return cancelled(
        fmt::format("interrupted; {} rows were measured and are kept: the same command "
                    "goes on where this one stopped",
                    outcome.rows));
  }
  return {};
}

Status run(const Flags& flags) {
  if (flags.status) return print_status(flags);
  if (!flags.export_format.empty()) return export_csv(flags);
  if (!flags.output.empty()) return invalid_argument("--output is for --export");
  return measure(flags);
}

}  // namespace

void add_profile_command(CLI::App& app, Status* outcome) {
  CLI::App* command = app.add_subcommand(
      "profile",
      "Measure slices of many operators on this machine's lanes, for 'tandem train'. What is "
      "measured is kept; the same command goes on where the last one stopped");
  const auto flags = std::make_shared<Flags>();
  flags->platform.add_to(*command);
  command->add_option("--lanes", flags->lanes, "Measure on these only (see 'tandem devices')")
      ->delimiter(',');
  command
      ->add_option("--budget", flags->minutes,
                   "Minutes that it may take, compiling kernels aside; 0: until nothing is left")
      ->check(number_from(0))
      ->capture_default_str();
  command
      ->add_option("--families", flags->families,
                   "Measure these operators only: linear, matmul, conv_1x1, conv_3x3, ...")
      ->delimiter(',');
  command
      ->add_option("--models", flags->models,
                   "Measure around the operators of these networks or ONNX files (default: the "
                   "zoo's published networks)")
      ->delimiter(',');
  command->add_option("--store", flags->store,
                      "The file of measurements (default: one per platform under "
                      "$XDG_DATA_HOME/tandem/profile)");
  command->add_option("--seed", flags->seed, "Of what is measured")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_flag("--status", flags->status, "Only tell what has been measured");
  command
      ->add_option("--export", flags->export_format,
                   "Only print what has been measured, one row a measurement")
      ->check(CLI::IsMember({"csv"}));
  command->add_option("-o,--output", flags->output, "The file to export to (default: stdout)");
  command->add_flag("--json", flags->json, "Print JSON");
  command->callback([flags, outcome] { *outcome = run(*flags); });
}

}  // namespace tandem::cli
