// `tandem zoo`: the built-in networks.
#include "zoo/zoo.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/network_file.h"
#include "cli/output_files.h"
#include "cli/progress.h"
#include "cli/shapes.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "support/write_file.h"
#include "tandem/model.h"

namespace tandem::cli {
namespace {

void list(bool json) {
  const std::vector<zoo::Entry> entries = zoo::list();
  if (json) {
    nlohmann::json networks = nlohmann::json::array();
    for (const zoo::Entry& entry : entries) {
      networks.push_back({{"name", entry.name},
                          {"description", entry.description},
                          {"input", entry.input_name},
                          {"shape", entry.input_dims},
                          {"parameters", entry.parameters},
                          {"gflops", entry.gflops}});
    }
    fmt::print("{}\n", nlohmann::json{{"networks", networks}}.dump(2));
    return;
  }
  size_t width = 0;
  for (const zoo::Entry& entry : entries) width = std::max(width, entry.name.size());
  fmt::print("{:{}} {:>14} {:>12} {:>8}  {}\n", "name", width, "input", "parameters", "GFLOP",
             "description");
  for (const zoo::Entry& entry : entries) {
    fmt::print("{:{}} {:>14} {:>12} {:>8.3f}  {}\n", entry.name, width,
               fmt::format("{}", fmt::join(entry.input_dims, "x")), entry.parameters, entry.gflops,
               entry.description);
  }
}

Status export_network(const std::string& name, uint64_t seed, const std::string& path) {
  TANDEM_RETURN_IF_ERROR(check_can_write({{"--output", path}}));
  return write_network(name, seed, path);
}

Status print_shapes(const std::string& name, const std::string& path) {
  TANDEM_RETURN_IF_ERROR(check_can_write({{"--output", path}}));
  const Progress progress("building " + name);
  TANDEM_ASSIGN_OR_RETURN(const Model model, Model::load("zoo:" + name));
  const std::string csv = to_csv(name, shapes_of(model.graph()));
  if (!path.empty()) return write_file(path, csv);
  fmt::print("{}", csv);
  return {};
}

}  // namespace

void add_zoo_command(CLI::App& app, Status* outcome) {
  CLI::App* zoo = app.add_subcommand("zoo", "Built-in networks with seeded random weights");
  zoo->require_subcommand(1);

  struct Flags {
    bool json = false;
    std::string name;
    std::string path;
    uint64_t seed = 1;
  };
  const auto flags = std::make_shared<Flags>();

  CLI::App* list_app = zoo->add_subcommand("list", "Print their names, sizes and inputs");
  list_app->add_flag("--json", flags->json, "Print JSON");
  list_app->callback([flags] { list(flags->json); });

  CLI::App* export_app = zoo->add_subcommand("export", "Write one as an ONNX file");
  export_app->add_option("name", flags->name, "See 'tandem zoo list'")->required();
  export_app->add_option("-o,--output", flags->path, "The file to write")->required();
  export_app->add_option("--seed", flags->seed, "Seed of the weights")
      ->check(at_least(0))
      ->capture_default_str();
  export_app->callback(
      [flags, outcome] { *outcome = export_network(flags->name, flags->seed, flags->path); });

  CLI::App* shapes_app = zoo->add_subcommand(
      "shapes",
      "Print the distinct shapes of its convolutions and matrix products as CSV, as "
      "'tandem bench op' reads them");
  shapes_app->add_option("name", flags->name, "See 'tandem zoo list'")->required();
  shapes_app->add_option("-o,--output", flags->path, "The file to write (default: stdout)");
  shapes_app->callback([flags, outcome] { *outcome = print_shapes(flags->name, flags->path); });
}

}  // namespace tandem::cli
