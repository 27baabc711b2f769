#include "simulate/published.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>

namespace tandem::simulate {
namespace {

constexpr std::array<const char*, 4> kKinds = {"network", "operator", "sync", "speedup"};

// Fields hold no commas.
std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  size_t at = 0;
  for (size_t comma = line.find(','); comma != std::string::npos; comma = line.find(',', at)) {
    fields.push_back(line.substr(at, comma - at));
    at = comma + 1;
  }
  fields.push_back(line.substr(at));
  return fields;
}

using Row = std::vector<std::string>;

Status read_rows(const std::string& path, const std::string& header,
                 const std::function<Status(const Row&)>& use) {
  std::ifstream file(path);
  if (!file) return not_found("cannot read " + path);
  std::string line;
  std::getline(file, line);
  if (line != header) return corrupt(fmt::format("{}:1: must be '{}'", path, header));
  const size_t fields = split(header).size();
  for (int number = 2; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const Row row = split(line);
    Status used = row.size() == fields
                      ? use(row)
                      : corrupt(fmt::format("{} fields instead of {}", row.size(), fields));
    if (!used.ok()) return used.with_context(fmt::format("{}:{}", path, number));
  }
  return {};
}

StatusOr<double> positive(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !std::isfinite(value) || value <= 0) {
    return corrupt("'" + text + "' is not a positive number");
  }
  return value;
}

StatusOr<double> unit_of(const std::string& unit, EntryKind kind) {
  if (kind == EntryKind::kSpeedUp ? unit == "x" : unit == "us") return 1;
  if (kind != EntryKind::kSpeedUp && unit == "ms") return 1000;
  return corrupt("unknown unit '" + unit + "'");
}

Status add_entry(const Row& row, Published* published) {
  Entry entry;
  entry.id = row[0];
  size_t kind = 0;
  while (kind < kKinds.size() && row[1] != kKinds[kind]) ++kind;
  if (kind == kKinds.size()) return corrupt("unknown kind '" + row[1] + "'");
  entry.kind = static_cast<EntryKind>(kind);
  entry.platform = row[2];
  entry.runtime = row[3];
  entry.lanes = row[4];
  entry.workload = row[5];
  TANDEM_ASSIGN_OR_RETURN(const double value, positive(row[6]));
  TANDEM_ASSIGN_OR_RETURN(const double unit, unit_of(row[7], entry.kind));
  entry.value = value * unit;
  entry.source = row[8];
  entry.note = row[9];
  published->entries.push_back(std::move(entry));
  return {};
}

Status add_operator(const Row& row, Published* published) {
  TANDEM_ASSIGN_OR_RETURN(const sim::Workload work, sim::parse_workload(row[1]));
  TANDEM_ASSIGN_OR_RETURN(const double count, positive(row[2]));
  published->networks[row[0]].push_back({work, static_cast<int>(count)});
  return {};
}

Status mark_held_out(const std::string& path, Published* published) {
  std::ifstream file(path);
  if (!file) return not_found("cannot read " + path);
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') names.insert(line);
  }
  std::set<std::string> used;
  for (Entry& entry : published->entries) {
    const bool by_workload =
        entry.kind == EntryKind::kNetwork || entry.kind == EntryKind::kOperator;
    const std::string name =
        fmt::format("{} {}", to_string(entry.kind), by_workload ? entry.workload : entry.id);
    entry.held_out = names.contains(name);
    if (entry.held_out) used.insert(name);
  }
  for (const std::string& name : names) {
    if (!used.contains(name)) return corrupt(fmt::format("{}: no entry is '{}'", path, name));
  }
  return {};
}

}  // namespace

const char* to_string(EntryKind kind) { return kKinds[static_cast<size_t>(kind)]; }

StatusOr<Published> load_published(const std::string& folder) {
  Published published;
  const std::string entry_header = "id,kind,platform,runtime,lanes,workload,value,unit,source,note";
  for (const char* name : {"phones_end_to_end.csv", "phones_operators.csv", "literature.csv"}) {
    TANDEM_RETURN_IF_ERROR(read_rows(folder + "/" + name, entry_header,
                                     [&](const Row& row) { return add_entry(row, &published); }));
  }
  for (const char* name : {"phones_networks.csv", "literature_networks.csv"}) {
    TANDEM_RETURN_IF_ERROR(
        read_rows(folder + "/" + name, "network,operator,count",
                  [&](const Row& row) { return add_operator(row, &published); }));
  }
  TANDEM_RETURN_IF_ERROR(mark_held_out(folder + "/held_out.txt", &published));
  return published;
}

}  // namespace tandem::simulate
