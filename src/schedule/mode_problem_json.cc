// The files of docs/scheduling.md.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "schedule/mode_problem.h"
#include "support/json_error.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr const char* kProblemFormat = "tandem mode problem";
constexpr const char* kScheduleFormat = "tandem mode schedule";
constexpr int kVersion = 1;

json part_json(const Part& part) {
  json result = {{"lane", part.lane}, {"us", part.us}};
  if (part.threads != 0) result["threads"] = part.threads;
  if (part.leave_us != 0) result["leave_us"] = part.leave_us;
  if (part.slice.op != kNone) result["operator"] = part.slice.op;
  if (!part.slice.whole()) {
    result["axis"] = part.slice.axis;
    result["begin"] = part.slice.begin;
    result["end"] = part.slice.end;
  }
  const Contention& c = part.contention;
  if (c.memory_share != 0 || c.slowdown_memory != 1 || c.slowdown_compute != 1) {
    result["contention"] = {{"memory_share", c.memory_share},
                            {"slowdown_memory", c.slowdown_memory},
                            {"slowdown_compute", c.slowdown_compute}};
  }
  return result;
}

Part part_from(const json& from) {
  Part part;
  part.lane = from.at("lane").get<int>();
  part.us = from.at("us").get<double>();
  part.threads = from.value("threads", 0);
  part.leave_us = from.value("leave_us", 0.0);
  part.slice.op = from.value("operator", kNone);
  part.slice.axis = from.value("axis", kNone);
  part.slice.begin = from.value("begin", int64_t{0});
  part.slice.end = from.value("end", int64_t{0});
  if (from.contains("contention")) {
    const json& c = from.at("contention");
    part.contention = {c.at("memory_share").get<double>(), c.at("slowdown_memory").get<double>(),
                       c.at("slowdown_compute").get<double>()};
  }
  return part;
}

json lane_json(const ModeLane& lane) {
  return {{"name", lane.name},
          {"fed_by", lane.fed_by == kNone ? json() : json(lane.fed_by)},
          {"enqueue_us", lane.enqueue_us},
          {"send_us", lane.send_us},
          {"receive_us", lane.receive_us}};
}

ModeLane lane_from(const json& from) {
  ModeLane lane;
  lane.name = from.at("name").get<std::string>();
  if (!from.at("fed_by").is_null()) lane.fed_by = from.at("fed_by").get<int>();
  lane.enqueue_us = from.at("enqueue_us").get<double>();
  lane.send_us = from.at("send_us").get<double>();
  lane.receive_us = from.at("receive_us").get<double>();
  return lane;
}

// `values`, flat, as [mode of from][mode of to][part of to].
template <typename T>
json nested(const ModeProblem& problem, const ModeEdge& edge, const std::vector<T>& values) {
  json result = json::array();
  for (size_t f = 0; f < problem.operators[edge.from].modes.size(); ++f) {
    json row = json::array();
    const std::vector<Mode>& to_modes = problem.operators[edge.to].modes;
    for (size_t t = 0; t < to_modes.size(); ++t) {
      json parts = json::array();
      for (size_t p = 0; p < to_modes[t].parts.size(); ++p) {
        parts.push_back(values[problem.index(edge, static_cast<int>(f), static_cast<int>(t),
                                             static_cast<int>(p))]);
      }
      row.push_back(std::move(parts));
    }
    result.push_back(std::move(row));
  }
  return result;
}

template <typename T>
Status flatten(const ModeProblem& problem, const ModeEdge& edge, const json& from,
               std::vector<T>* values) {
  values->assign(problem.index_size(edge), T{});
  const std::vector<Mode>& to_modes = problem.operators[edge.to].modes;
  bool fits = from.size() == problem.operators[edge.from].modes.size();
  for (size_t f = 0; fits && f < from.size(); ++f) {
    fits = from[f].size() == to_modes.size();
    for (size_t t = 0; fits && t < to_modes.size(); ++t) {
      fits = from[f][t].size() == to_modes[t].parts.size();
      for (size_t p = 0; fits && p < from[f][t].size(); ++p) {
        (*values)[problem.index(edge, static_cast<int>(f), static_cast<int>(t),
                                static_cast<int>(p))] = from[f][t][p].get<T>();
      }
    }
  }
  if (fits) return {};
  return corrupt(
      fmt::format("the edge from {} to {} does not have an entry per pair of modes and "
                  "part",
                  problem.operators[edge.from].name, problem.operators[edge.to].name));
}

StatusOr<ModeEdge> edge_from(const ModeProblem& problem, const json& from) {
  ModeEdge edge;
  edge.from = from.at("from").get<int>();
  edge.to = from.at("to").get<int>();
  const auto operators = static_cast<int>(problem.operators.size());
  if (edge.from < 0 || edge.from >= edge.to || edge.to >= operators) {
    return corrupt(
        fmt::format("an edge goes from operator {} to {} of {}", edge.from, edge.to, operators));
  }
  TANDEM_RETURN_IF_ERROR(flatten(problem, edge, from.at("waits"), &edge.waits));
  if (from.contains("fetch_us")) {
    TANDEM_RETURN_IF_ERROR(flatten(problem, edge, from.at("fetch_us"), &edge.fetch_us));
  }
  return edge;
}

Status check_format(const json& from, const char* format) {
  if (from.value("format", "") != format) {
    return corrupt(fmt::format("not a file of format '{}'", format));
  }
  if (const int version = from.value("version", 0); version != kVersion) {
    return unsupported(fmt::format("version {} of format '{}'; this program reads version {}",
                                   version, format, kVersion));
  }
  return {};
}

// Calls `read` for each element of a list; errors say of which.
template <typename Read>
Status for_each_of(const json& from, const char* list, const Read& read) {
  const json& elements = from.at(list);
  if (!elements.is_array()) return corrupt(fmt::format("{} is no list", list));
  for (size_t i = 0; i < elements.size(); ++i) {
    const std::string where = fmt::format("{}[{}]", list, i);
    try {
      TANDEM_RETURN_IF_ERROR(read(elements[i]).with_context(where));
    } catch (const json::exception& e) {
      return corrupt(fmt::format("{}: {}", where, json_problem(e.what())));
    }
  }
  return {};
}

StatusOr<ModeProblem> problem_from(const json& from) {
  TANDEM_RETURN_IF_ERROR(check_format(from, kProblemFormat));
  ModeProblem problem;
  problem.name = from.at("name").get<std::string>();
  TANDEM_RETURN_IF_ERROR(for_each_of(from, "lanes", [&](const json& lane) {
    problem.lanes.push_back(lane_from(lane));
    return Status();
  }));
  problem.latency_us = from.at("latency_us").get<std::vector<std::vector<double>>>();
  TANDEM_RETURN_IF_ERROR(for_each_of(from, "operators", [&](const json& op) {
    ModeOperator& added = problem.operators.emplace_back();
    added.name = op.at("name").get<std::string>();
    return for_each_of(op, "modes", [&](const json& mode) {
      Mode& made = added.modes.emplace_back();
      return for_each_of(mode, "parts", [&](const json& part) {
        made.parts.push_back(part_from(part));
        return Status();
      });
    });
  }));
  TANDEM_RETURN_IF_ERROR(for_each_of(from, "edges", [&](const json& edge) -> Status {
    TANDEM_ASSIGN_OR_RETURN(ModeEdge added, edge_from(problem, edge));
    problem.edges.push_back(std::move(added));
    return {};
  }));
  TANDEM_RETURN_IF_ERROR(problem.validate());
  return problem;
}

StatusOr<ModeSchedule> schedule_from(const json& from) {
  TANDEM_RETURN_IF_ERROR(check_format(from, kScheduleFormat));
  ModeSchedule schedule;
  schedule.modes = from.at("modes").get<std::vector<int>>();
  for (const json& lane : from.at("lanes")) {
    std::vector<PartRef>& order = schedule.lanes.emplace_back();
    for (const json& ref : lane) order.push_back({ref.at(0).get<int>(), ref.at(1).get<int>()});
  }
  return schedule;
}

}  // namespace

std::string to_json(const ModeProblem& problem) {
  json result = {
      {"format", kProblemFormat},        {"version", kVersion},        {"name", problem.name},
      {"lanes", json::array()},          {"operators", json::array()}, {"edges", json::array()},
      {"latency_us", problem.latency_us}};
  for (const ModeLane& lane : problem.lanes) result["lanes"].push_back(lane_json(lane));
  for (const ModeOperator& op : problem.operators) {
    json modes = json::array();
    for (const Mode& mode : op.modes) {
      json parts = json::array();
      for (const Part& part : mode.parts) parts.push_back(part_json(part));
      modes.push_back({{"parts", std::move(parts)}});
    }
    result["operators"].push_back({{"name", op.name}, {"modes", std::move(modes)}});
  }
  for (const ModeEdge& edge : problem.edges) {
    json entry = {
        {"from", edge.from}, {"to", edge.to}, {"waits", nested(problem, edge, edge.waits)}};
    if (!edge.fetch_us.empty()) entry["fetch_us"] = nested(problem, edge, edge.fetch_us);
    result["edges"].push_back(std::move(entry));
  }
  return result.dump();
}

StatusOr<ModeProblem> mode_problem_from_json(std::string_view text) {
  try {
    return problem_from(json::parse(text));
  } catch (const json::exception& e) {
    return corrupt(fmt::format("not a mode problem: {}", json_problem(e.what())));
  }
}

std::string to_json(const ModeSchedule& schedule, double makespan_us) {
  json lanes = json::array();
  for (const std::vector<PartRef>& lane : schedule.lanes) {
    json order = json::array();
    for (const PartRef& ref : lane) order.push_back({ref.op, ref.part});
    lanes.push_back(std::move(order));
  }
  return json{{"format", kScheduleFormat},
              {"version", kVersion},
              {"makespan_us", makespan_us},
              {"modes", schedule.modes},
              {"lanes", std::move(lanes)}}
      .dump();
}

StatusOr<ModeSchedule> mode_schedule_from_json(const ModeProblem& problem, std::string_view text) {
  StatusOr<ModeSchedule> schedule = invalid_argument("");
  try {
    schedule = schedule_from(json::parse(text));
  } catch (const json::exception& e) {
    return corrupt(fmt::format("not a mode schedule: {}", json_problem(e.what())));
  }
  if (!schedule.ok()) return schedule.status();
  TANDEM_RETURN_IF_ERROR(check_mode_schedule(problem, *schedule));
  return schedule;
}

}  // namespace tandem
