// `tandem bench`: the tables of docs/results.md.
#include "cli/bench.h"

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/conditions.h"
#include "cli/progress.h"
#include "cli/sync_report.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "schedule/scheduler.h"

namespace tandem::cli {
namespace {

Status bench_sync_command(const PlatformFlags& platform_flags, const SyncBenchOptions& options,
                          bool json) {
  const Conditions conditions;
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(platform_flags));
  std::vector<LanePairTimes> pairs;
  {
    const Progress progress("crossing between lanes");
    TANDEM_ASSIGN_OR_RETURN(pairs, bench_sync(platform, options));
  }
  if (pairs.empty()) {
    return failed_precondition(
        "there is no pair of a CPU lane and an OpenCL lane to cross between; see 'tandem devices'");
  }
  if (!json) {
    print_mechanisms(pairs);
    fmt::print("{}", conditions.to_text(*platform));
    return {};
  }
  // Most machines have one pair; the others' figures are listed behind.
  nlohmann::json report = {{"cpu_lane", pairs.front().cpu_lane},
                           {"queue_lane", pairs.front().queue_lane},
                           {"mechanisms", mechanisms_json(pairs.front())},
                           {"other_pairs", nlohmann::json::array()},
                           {"conditions", conditions.to_json(*platform)}};
  for (size_t i = 1; i < pairs.size(); ++i) {
    report["other_pairs"].push_back({{"cpu_lane", pairs[i].cpu_lane},
                                     {"queue_lane", pairs[i].queue_lane},
                                     {"mechanisms", mechanisms_json(pairs[i])}});
  }
  fmt::print("{}\n", report.dump(2));
  return {};
}

void add_bench_op(CLI::App& bench, Status* outcome) {
  struct Flags {
    BenchOpFlags lanes;
    BenchSetFlags set;
    int samples = 0;
    bool json = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* op = bench.add_subcommand(
      "op", "Single operators: the lanes' speed, or what dividing them over lanes brings");
  CLI::Option* shapes = op->add_option(
      "--shapes", flags->lanes.files,
      "GFLOPS of each lane, beside oneDNN and XNNPACK called directly, on the shapes of files as "
      "'tandem zoo shapes' writes them, such as bench/shapes/*.csv");
  op->add_flag("--impl", flags->lanes.implementations,
               "Every implementation that CPU lanes have for a shape, beside the one they pick")
      ->needs(shapes);
  op->add_option("--least-gflop", flags->lanes.least_gflop, "Leave out operators with less work")
      ->check(number_from(0))
      ->needs(shapes);
  CLI::Option* set =
      op->add_option("--set", flags->set.set,
                     "Each lane alone, the division that the engine chooses, and the best of an "
                     "exhaustive search, on operators of well-known networks")
          ->check(CLI::IsMember(set_names()))
          ->excludes(shapes);
  op->add_option("--sync", flags->set.sync,
                 "How lanes wait for each other; several, such as svm,event, to compare them")
      ->delimiter(',')
      ->transform(&parse_mechanism)
      ->type_name("MECHANISM")
      ->default_str("auto")
      ->needs(set);
  op->add_option("--filter", flags->set.filter,
                 "Only operators whose name contains this, such as vgg16 or 'linear 50x'")
      ->needs(set);
  op->add_option("--samples", flags->samples,
                 fmt::format("Timed samples, interleaved (default: {}; with --set {} rounds)",
                             flags->lanes.samples, flags->set.samples))
      ->check(at_least(1));
  op->add_flag("--json", flags->json, "Print JSON");
  flags->set.costs.add_to(*op);
  flags->lanes.platform.add_to(*op);
  op->callback([flags, shapes, set, outcome] {
    if (shapes->empty() && set->empty()) {
      *outcome = invalid_argument(
          "say which operators: --set linear, --set conv, or --shapes bench/shapes/resnet50.csv");
      return;
    }
    if (flags->samples > 0) flags->lanes.samples = flags->set.samples = flags->samples;
    flags->lanes.json = flags->set.json = flags->json;
    flags->set.platform = flags->lanes.platform;
    *outcome = set->empty() ? bench_op(flags->lanes) : bench_set(flags->set);
  });
}

// What was given of the options of `app` and of its groups that are not among `own`, for another
// command that has them, too.
std::vector<std::string> given_but(const CLI::App& app, const std::vector<CLI::Option*>& own) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    if (std::find(own.begin(), own.end(), option) != own.end()) continue;
    for (const std::string& value : option->results()) {
      arguments.push_back(fmt::format("{}={}", option->get_name(), value));
    }
  }
  for (const CLI::App* group : app.get_subcommands(nullptr)) {
    const std::vector<std::string> of_group = given_but(*group, own);
    arguments.insert(arguments.end(), of_group.begin(), of_group.end());
  }
  return arguments;
}

void add_engine(CLI::App& app, const EngineKind& kind, EngineFlags* flags) {
  const std::string flag = fmt::format("--{}", kind.key);
  app.add_option(flag, flags->python,
                 fmt::format("The Python to run {} with; 'none': leave it out (default: "
                             ".venv/bin/python of the source tree)",
                             kind.name));
  app.add_option(flag + "-threads", flags->threads,
                 fmt::format("{}'s threads, on as many of the lanes' cores, the CPU lane's first",
                             kind.name))
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option(flag + "-seconds", flags->seconds,
                 fmt::format("Give {} up when an answer takes longer", kind.name))
      ->check(at_least(1))
      ->capture_default_str();
}

void add_bench_model(CLI::App& bench, Status* outcome) {
  const auto flags = std::make_shared<BenchModelFlags>();
  CLI::App* model = bench.add_subcommand(
      "model",
      "Whole networks: strategies, ONNX Runtime and LiteRT in turn, memory, initialization");
  model->add_option("models", flags->models, "Networks of 'tandem zoo list', or ONNX files");
  model->add_flag("--all", flags->all, "Every network of the zoo but the tiny ones");
  model
      ->add_option("--strategy", flags->strategies,
                   fmt::format("Which of {}, in turn", fmt::join(scheduler_names(), ",")))
      ->delimiter(',')
      ->default_str("cpu,gpu,inter,intra,chain,joint");
  model->add_option("--warmup,--warmup_runs", flags->warmup, "Rounds before timing")
      ->check(at_least(0))
      ->capture_default_str();
  model->add_option("--runs,--num_runs", flags->runs, "Timed rounds")
      ->check(at_least(1))
      ->capture_default_str();
  for (size_t i = 0; i < kEngines.size(); ++i) add_engine(*model, *kEngines[i], &flags->engines[i]);
  model->add_flag("--json", flags->json, "Print JSON");
  const std::vector<CLI::Option*> own = model->get_options({});
  model->add_option("--deadline-ms", flags->deadline_ms, "A run that takes longer fails")
      ->check(at_least(1))
      ->capture_default_str();
  flags->load.add_to(*model);
  flags->costs.add_to(*model);
  flags->search.add_to(*model);
  flags->platform.add_to(*model);
  model->callback([flags, model, own, outcome] {
    flags->shared_arguments = given_but(*model, own);
    *outcome = bench_model(*flags);
  });
}

void add_bench_schedule(CLI::App& bench, Status* outcome) {
  const auto flags = std::make_shared<BenchScheduleFlags>();
  CLI::App* schedule = bench.add_subcommand(
      "schedule", "Schedulers on generated and real problems, beside the optimum or its bound");
  schedule->add_option("--graphs", flags->graphs, "Generated problems")
      ->check(at_least(0))
      ->capture_default_str();
  schedule->add_flag("!--no-stages", flags->stages, "Leave the stages of the zoo's networks out");
  schedule->add_option("--seed", flags->seed, "Of generated problems")
      ->check(at_least(0))
      ->capture_default_str();
  schedule->add_option("--problems", flags->folders, "Folders with more problems");
  schedule->add_flag("!--no-adversaries", flags->adversaries,
                     "Leave out what --adversary found before (bench/problems)");
  schedule->add_flag("!--no-offline", flags->offline,
                     "Leave OR-tools' CP-SAT out: optima are proven by branch and bound alone");
  schedule->add_option("--python", flags->python,
                       "A Python that has OR-tools (default: .venv/bin/python of the source tree)");
  schedule->add_option("--time-limit", flags->time_limit, "Seconds of CP-SAT per problem")
      ->check(positive())
      ->capture_default_str();
  schedule->add_option("--workers", flags->workers, "Threads of CP-SAT")
      ->check(at_least(1))
      ->capture_default_str();
  schedule
      ->add_option("--exact-ms", flags->exact_ms, "Milliseconds of branch and bound per problem")
      ->check(positive())
      ->capture_default_str();
  schedule->add_option("--export", flags->export_folder,
                       "Write the problems into this folder, for tools/offline.py, and end");
  schedule->add_flag("--adversary", flags->adversary,
                     "Look for small problems on which joint is furthest from the optimum; with "
                     "--export, write the worst ten");
  schedule->add_option("--minutes", flags->minutes, "How long to look for them")
      ->check(positive())
      ->capture_default_str();
  schedule->add_flag("--json", flags->json, "Print JSON");
  schedule->callback([flags, outcome] { *outcome = bench_schedule(*flags); });
}

void add_bench_papers(CLI::App& bench, Status* outcome) {
  const auto flags = std::make_shared<BenchPapersFlags>();
  CLI::App* papers = bench.add_subcommand(
      "papers", "Tables like those of two papers on co-execution, on SIMULATED phones");
  papers->add_option("--platform", flags->platforms, "Of the papers' four; default: all")
      ->delimiter(',');
  papers->add_option("--networks", flags->networks, "Of 'tandem zoo list'")->delimiter(',');
  papers
      ->add_option("--samples", flags->samples, "Layers of each family that predictors learn from")
      ->check(at_least(30))
      ->capture_default_str();
  papers
      ->add_option("--layers", flags->layers,
                   "Layers of each family to divide; 0: all of bench/shapes/set_*.csv")
      ->check(at_least(0))
      ->capture_default_str();
  papers
      ->add_option(
          "--network-samples", flags->network_samples,
          "Around the networks' operators, that the predictors learn from by which they are "
          "planned")
      ->check(at_least(30))
      ->capture_default_str();
  papers
      ->add_option("--offline", flags->offline_seconds,
                   "Seconds of OR-tools' CP-SAT for each network and platform; 0: none")
      ->check(number_from(0))
      ->capture_default_str();
  papers->add_option("--python", flags->python,
                     "A Python with OR-tools (default: the source tree's .venv)");
  papers->add_option("--seed", flags->seed, "Of drawn layers and noise")
      ->check(at_least(0))
      ->capture_default_str();
  papers->add_flag("--json", flags->json, "Print JSON");
  papers->callback([flags, outcome] { *outcome = bench_papers(*flags); });
}

}  // namespace

void add_bench_command(CLI::App& app, Status* outcome) {
  CLI::App* bench = app.add_subcommand("bench", "Measure parts of the engine");
  bench->require_subcommand(1);

  struct SyncFlags {
    PlatformFlags platform;
    SyncBenchOptions options;
    bool json = false;
  };
  const auto sync_flags = std::make_shared<SyncFlags>();
  sync_flags->options.long_wait = std::chrono::seconds(1);
  CLI::App* sync = bench->add_subcommand("sync", "What a crossing between lanes costs");
  sync->add_option("--iterations", sync_flags->options.iterations, "Crossings a mechanism")
      ->check(at_least(1))
      ->capture_default_str();
  sync->add_flag("--json", sync_flags->json, "Print JSON");
  sync_flags->platform.add_to(*sync);
  sync->callback([sync_flags, outcome] {
    *outcome = bench_sync_command(sync_flags->platform, sync_flags->options, sync_flags->json);
  });

  add_bench_op(*bench, outcome);
  add_bench_model(*bench, outcome);
  add_bench_schedule(*bench, outcome);
  add_bench_papers(*bench, outcome);
}

}  // namespace tandem::cli
