#include "runtime/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Random;

PlanOrigin origin_of(const Graph& graph) {
  return {graph.name, model_digest(graph), "two lanes", {"cpu", "gpu"}, "calibration", "1.0"};
}

class PlanFile : public ::testing::Test {
 protected:
  PlanFile() : graph_(testing::random_graph(random_, 20)) {
    plan_.origin = origin_of(graph_);
    plan_.schedule = testing::random_schedule(random_, graph_, 2);
    plan_.prediction.lanes.resize(2);
    for (int lane = 0; lane < 2; ++lane) {
      for (size_t i = 0; i < plan_.schedule.lanes[lane].size(); ++i) {
        ScheduledSlice& slice = plan_.schedule.lanes[lane][i];
        slice.predicted_us = random_.real(1, 5);
        slice.threads = static_cast<int>(i % 3);
        const double begin = 10.0 * static_cast<double>(i);
        plan_.prediction.lanes[lane].push_back(
            {SpanKind::kSlice, static_cast<int>(i), {}, begin, begin + slice.predicted_us});
      }
    }
    plan_.prediction.makespan_us = 1234.5;
    text_ = to_json(graph_, plan_);
  }

  StatusOr<Plan> read(const std::string& text) {
    return plan_from_json(graph_, origin_of(graph_), text, "p.json");
  }
  void refuse(const std::string& text, StatusCode code, const std::string& says) {
    const auto plan = read(text);
    ASSERT_FALSE(plan.ok()) << "should say: " << says;
    EXPECT_EQ(plan.status().code(), code) << plan.status().message();
    EXPECT_THAT(plan.status().message(), AllOf(HasSubstr("p.json"), HasSubstr(says)));
  }
  json parsed() const { return json::parse(text_); }

  Random random_{9};
  Graph graph_;
  Plan plan_;
  std::string text_;
};

TEST_F(PlanFile, ComesBackAsItWas) {
  const auto plan = read(text_);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->origin, plan_.origin);
  EXPECT_EQ(plan->schedule.strategy, plan_.schedule.strategy);
  ASSERT_EQ(plan->schedule.lanes.size(), 2U);
  for (int lane = 0; lane < 2; ++lane) {
    const auto& read = plan->schedule.lanes[lane];
    const auto& written = plan_.schedule.lanes[lane];
    ASSERT_EQ(read.size(), written.size());
    for (size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(read[i].slice, written[i].slice);
      EXPECT_EQ(read[i].threads, written[i].threads);
      EXPECT_EQ(read[i].predicted_us, written[i].predicted_us);
      EXPECT_EQ(read[i].waits, written[i].waits);
    }
    std::vector<Span> slices;
    for (const Span& span : plan->prediction.lanes[lane]) {
      if (span.kind == SpanKind::kSlice) slices.push_back(span);
    }
    EXPECT_EQ(slices, plan_.prediction.lanes[lane]);
  }
  EXPECT_EQ(plan->prediction.makespan_us, 1234.5);
  EXPECT_EQ(to_json(graph_, *plan), text_);
}

TEST_F(PlanFile, OnDisk) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "plan.json").string();
  ASSERT_TRUE(save_plan(path, graph_, plan_).ok());
  EXPECT_TRUE(load_plan(path, graph_, origin_of(graph_)).ok());
  std::filesystem::remove(path);
  const Status missing = load_plan(path, graph_, origin_of(graph_)).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(path));
}

TEST_F(PlanFile, IsRefusedElsewhere) {
  const auto refused = [&](const auto& change) {
    PlanOrigin here = origin_of(graph_);
    change(here);
    const Status status = plan_from_json(graph_, here, text_, "p.json").status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("--replan"));
    return status.message();
  };
  EXPECT_THAT(refused([](PlanOrigin& o) { o.engine = "2.0"; }),
              AllOf(HasSubstr("engine is 1.0"), HasSubstr("here it is 2.0")));
  EXPECT_THAT(refused([](PlanOrigin& o) { o.platform = "three"; }), HasSubstr("platform"));
  EXPECT_THAT(refused([](PlanOrigin& o) { o.lanes = {"cpu"}; }), HasSubstr("lanes is cpu, gpu"));
  EXPECT_THAT(refused([](PlanOrigin& o) { o.costs = "predictors"; }), HasSubstr("source of costs"));
  EXPECT_THAT(refused([](PlanOrigin& o) { o.model_digest = "0"; }), HasSubstr("model"));
  // A plan for which nobody looked at costs.
  plan_.origin.costs = "none";
  EXPECT_TRUE(read(to_json(graph_, plan_)).ok());
}

// Every prefix is refused, and none crashes.
TEST_F(PlanFile, TruncatedAnywhere) {
  for (size_t size = 0; size + 2 < text_.size(); size += 1 + size / 97) {
    const auto plan = read(text_.substr(0, size));
    ASSERT_FALSE(plan.ok()) << size;
    ASSERT_EQ(plan.status().code(), StatusCode::kCorrupt);
  }
}

TEST_F(PlanFile, EditedByHand) {
  refuse("[1, 2]", StatusCode::kCorrupt, "is no object");
  refuse("{}", StatusCode::kCorrupt, "tandem_plan is missing");
  json plan = parsed();
  plan["tandem_plan"] = 7;
  refuse(plan.dump(), StatusCode::kUnsupported, "version 7");
  plan = parsed();
  plan["lanes"][1].erase("slices");
  refuse(plan.dump(), StatusCode::kCorrupt, "lanes[1].slices is missing");
  plan = parsed();
  plan["lanes"] = 3;
  refuse(plan.dump(), StatusCode::kCorrupt, "lanes is no list");
  plan = parsed();
  plan["lanes"][0]["slices"][2]["operator"] = 5;
  refuse(plan.dump(), StatusCode::kCorrupt, "lanes[0].slices[2].operator cannot be 5");
  plan = parsed();
  plan["lanes"][0]["slices"][2]["predicted_us"] = -1;
  refuse(plan.dump(), StatusCode::kCorrupt, "lanes[0].slices[2].predicted_us cannot be -1");
  plan = parsed();
  plan["lanes"][0]["slices"][0]["operator"] = "nobody";
  refuse(plan.dump(), StatusCode::kInvalidArgument, "nobody");
  plan = parsed();
  plan["lanes"][0]["slices"][0]["axis"] = 99;
  plan["lanes"][0]["slices"][0]["begin"] = 0;
  plan["lanes"][0]["slices"][0]["end"] = 16;
  refuse(plan.dump(), StatusCode::kInvalidArgument,
         graph_.op(plan_.schedule.lanes[0][0].slice.op).name);
}

TEST_F(PlanFile, SchedulesThatAreNone) {
  // A slice too few: the operator is named.
  json plan = parsed();
  const std::string missing = graph_.op(plan_.schedule.lanes[0].back().slice.op).name;
  plan["lanes"][0]["slices"].erase(plan["lanes"][0]["slices"].size() - 1);
  refuse(plan.dump(), StatusCode::kInvalidArgument, missing);
  // One too many.
  plan = parsed();
  plan["lanes"][1]["slices"].push_back(plan["lanes"][0]["slices"][0]);
  refuse(plan.dump(), StatusCode::kInvalidArgument, "overlap");
  // In an order that contradicts what they need.
  plan = parsed();
  for (json& lane : plan["lanes"]) {
    std::reverse(lane["slices"].begin(), lane["slices"].end());
  }
  refuse(plan.dump(), StatusCode::kInvalidArgument, "contradicts itself");
}

TEST(ModelDigest, TellsModelsApart) {
  const auto graph = [](const char* name, int64_t columns, Function function, bool two_outputs) {
    Graph g;
    const TensorId x = g.add_input("x", DataType::kFloat32, {4, columns});
    UnaryAttributes unary;
    unary.function.function = function;
    const TensorId y = g.add(name, unary, {x}).value();
    if (two_outputs) g.mark_output(y);
    g.mark_output(g.add("last", UnaryAttributes{}, {y}).value());
    return model_digest(g);
  };
  const std::string base = graph("a", 32, Function::kRelu, false);
  EXPECT_EQ(base, graph("a", 32, Function::kRelu, false));
  EXPECT_NE(base, graph("b", 32, Function::kRelu, false));
  EXPECT_NE(base, graph("a", 48, Function::kRelu, false));
  EXPECT_NE(base, graph("a", 32, Function::kSigmoid, false));
  EXPECT_NE(base, graph("a", 32, Function::kRelu, true));
}

}  // namespace
}  // namespace tandem
