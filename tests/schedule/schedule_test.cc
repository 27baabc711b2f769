#include "schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::Random;
using testing::random_graph;
using testing::random_schedule;
using testing::random_schedule_without_waits;

// Slices numbered through, and who must finish before whom, as plainly as can be.
class Closure {
 public:
  explicit Closure(const Schedule& schedule) {
    for (const auto& lane : schedule.lanes) {
      first_.push_back(size_);
      size_ += lane.size();
    }
    before_.assign(size_, std::vector<bool>(size_, false));
    for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
      for (size_t i = 1; i < schedule.lanes[lane].size(); ++i) {
        before_[first_[lane] + i - 1][first_[lane] + i] = true;
      }
    }
  }

  size_t id(size_t lane, size_t index) const { return first_[lane] + index; }
  size_t size() const { return size_; }
  void add(size_t earlier, size_t later) { before_[earlier][later] = true; }
  void close() {
    for (size_t k = 0; k < size_; ++k) {
      for (size_t i = 0; i < size_; ++i) {
        if (!before_[i][k]) continue;
        for (size_t j = 0; j < size_; ++j) {
          if (before_[k][j]) before_[i][j] = true;
        }
      }
    }
  }
  bool before(size_t a, size_t b) const { return before_[a][b]; }
  bool operator==(const Closure& other) const { return before_ == other.before_; }

 private:
  std::vector<size_t> first_;
  size_t size_ = 0;
  std::vector<std::vector<bool>> before_;
};

struct Edge {
  size_t lane, index;
  Wait wait;
};

std::vector<Edge> edges_of(const Schedule& schedule) {
  std::vector<Edge> edges;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      for (const Wait& wait : schedule.lanes[lane][i].waits) edges.push_back({lane, i, wait});
    }
  }
  return edges;
}

Closure closure_of_waits(const Schedule& schedule, const std::vector<Edge>& edges) {
  Closure closure(schedule);
  for (const Edge& e : edges) {
    closure.add(closure.id(e.wait.lane, e.wait.count - 1), closure.id(e.lane, e.index));
  }
  closure.close();
  return closure;
}

// Whether `b` reads something that `a` writes, element by element of the memory that they share.
class SharedElements {
 public:
  explicit SharedElements(const Graph& graph) : graph_(graph), placement_(analyse(graph)) {}

  bool depends(const Slice& b, const Slice& a) const {
    const std::vector<Element> written = written_by(a);
    const Operator& reader = graph_.op(b.op);
    for (size_t i = 0; i < reader.inputs.size(); ++i) {
      const auto read = elements(reader.inputs[i], input_region(graph_, b.op, static_cast<int>(i),
                                                                output_region(graph_, b)));
      std::vector<Element> both;
      std::set_intersection(read.begin(), read.end(), written.begin(), written.end(),
                            std::back_inserter(both));
      if (!both.empty()) return true;
    }
    return false;
  }

 private:
  using Element = std::pair<TensorId, int64_t>;  // root and offset

  std::vector<Element> written_by(const Slice& slice) const {
    const Operator& op = graph_.op(slice.op);
    std::vector<Element> written = elements(op.output, output_region(graph_, slice));
    if (op.kind() != OperatorKind::kConcat) return written;
    // Operands in place are there already.
    for (TensorId operand : op.inputs) {
      if (placement_.owns_memory(operand)) continue;
      std::vector<Element> rest;
      const auto there = elements(operand, whole_region(graph_.tensor(operand).dims));
      std::set_difference(written.begin(), written.end(), there.begin(), there.end(),
                          std::back_inserter(rest));
      written = std::move(rest);
    }
    return written;
  }

  // Of the region, ascending.
  std::vector<Element> elements(TensorId tensor, const Region& region) const {
    const TensorPlace& place = placement_.tensors[tensor];
    std::vector<Element> result;
    if (is_empty(region)) return result;
    std::vector<int64_t> offsets{place.offset};
    for (size_t d = 0; d < region.size(); ++d) {
      std::vector<int64_t> next;
      for (int64_t offset : offsets) {
        for (int64_t i = region[d].begin; i < region[d].end; ++i) {
          next.push_back(offset + i * place.strides[d]);
        }
      }
      offsets = std::move(next);
    }
    for (int64_t offset : offsets) result.emplace_back(place.root, offset);
    std::sort(result.begin(), result.end());
    return result;
  }

  const Graph& graph_;
  Placement placement_;
};

TEST(DeriveWaits, AreSufficientAndNoneCanBeLeftOut) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(3, 25)));
    const Schedule schedule =
        random_schedule(random, graph, static_cast<int>(random.integer(1, 4)));
    ASSERT_TRUE(check_schedule(graph, schedule).ok()) << check_schedule(graph, schedule).message();

    const std::vector<Edge> edges = edges_of(schedule);
    const Closure with_waits = closure_of_waits(schedule, edges);
    Closure needed(schedule);
    const SharedElements shared(graph);
    for (size_t la = 0; la < schedule.lanes.size(); ++la) {
      for (size_t a = 0; a < schedule.lanes[la].size(); ++a) {
        for (size_t lb = 0; lb < schedule.lanes.size(); ++lb) {
          for (size_t b = 0; b < schedule.lanes[lb].size(); ++b) {
            const Slice& reader = schedule.lanes[lb][b].slice;
            const Slice& writer = schedule.lanes[la][a].slice;
            if (reader.op == writer.op || !shared.depends(reader, writer)) continue;
            ASSERT_TRUE(with_waits.before(needed.id(la, a), needed.id(lb, b)))
                << "seed " << seed << ": " << to_string(graph, reader) << " reads what "
                << to_string(graph, writer) << " writes";
            needed.add(needed.id(la, a), needed.id(lb, b));
          }
        }
      }
    }
    // Regions are boxes, so that waits may order a little more than single elements demand; but
    // every one of them must make a difference.
    for (size_t i = 0; i < edges.size(); ++i) {
      std::vector<Edge> others = edges;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_FALSE(closure_of_waits(schedule, others) == with_waits)
          << "seed " << seed << ": wait " << i << " is implied by the others";
    }
  }
}

TEST(DeriveWaits, ChannelSplitsOfDepthwiseConvolutionsNeedNone) {
  Random random(1);
  Graph graph;
  const Layout image{Order::kChannelsLast, true};
  TensorId x = graph.add_input("x", DataType::kFloat32, {1, 32, 8, 8}, image);
  ConvAttributes conv;
  conv.kernel = {3, 3};
  conv.pads = {1, 1, 1, 1};
  conv.groups = 32;
  for (int i = 0; i < 3; ++i) {
    const TensorId w = graph.add_constant("", testing::random_tensor(random, {32, 1, 3, 3}));
    x = graph.add("", conv, {x, w}, {}, image).value();
  }
  graph.mark_output(x);
  Schedule schedule;
  schedule.lanes.resize(2);
  for (int op = 0; op < 3; ++op) {
    schedule.lanes[0].push_back({.slice = {op, 1, 0, 16}});
    schedule.lanes[1].push_back({.slice = {op, 1, 16, 32}});
  }
  ASSERT_TRUE(derive_waits(graph, &schedule).ok());
  EXPECT_TRUE(edges_of(schedule).empty());

  // By rows, each needs a halo row of the other's.
  schedule.lanes.assign(2, {});
  for (int op = 0; op < 3; ++op) {
    schedule.lanes[0].push_back({.slice = {op, 2, 0, 4}});
    schedule.lanes[1].push_back({.slice = {op, 2, 4, 8}});
  }
  ASSERT_TRUE(derive_waits(graph, &schedule).ok());
  EXPECT_EQ(edges_of(schedule).size(), 4u);
}

TEST(DeriveWaits, NamesACycle) {
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {4, 32});
  UnaryAttributes relu;
  relu.function.function = Function::kRelu;
  const TensorId a = graph.add("first", relu, {x}).value();
  const TensorId b = graph.add("second", relu, {a}).value();
  const TensorId c = graph.add("third", relu, {b}).value();
  graph.mark_output(c);
  Schedule schedule;
  schedule.lanes.resize(2);
  schedule.lanes[0] = {{.slice = {.op = 2}}, {.slice = {.op = 0}}};
  schedule.lanes[1] = {{.slice = {.op = 1}}};
  const Status status = derive_waits(graph, &schedule);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("first"));
  EXPECT_THAT(status.message(), HasSubstr("second"));
  EXPECT_THAT(status.message(), HasSubstr("third"));
}

TEST(FinishedBefore, IsTheClosureOfOrdersAndWaits) {
  for (uint64_t seed = 100; seed < 130; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, 15);
    const Schedule schedule = random_schedule(random, graph, 3);
    const Closure closure = closure_of_waits(schedule, edges_of(schedule));
    const auto finished = finished_before(schedule);
    for (size_t la = 0; la < 3; ++la) {
      for (size_t a = 0; a < schedule.lanes[la].size(); ++a) {
        for (size_t lb = 0; lb < 3; ++lb) {
          int expected = lb == la ? static_cast<int>(a) + 1 : 0;
          for (size_t b = 0; lb != la && b < schedule.lanes[lb].size(); ++b) {
            if (closure.before(closure.id(lb, b), closure.id(la, a))) {
              expected = static_cast<int>(b) + 1;
            }
          }
          ASSERT_EQ(finished[la][a][lb], expected) << "seed " << seed;
        }
      }
    }
  }
}

class CheckSchedule : public ::testing::Test {
 protected:
  void SetUp() override {
    UnaryAttributes relu;
    relu.function.function = Function::kRelu;
    const TensorId x = graph_.add_input("x", DataType::kFloat32, {4, 64});
    const TensorId a = graph_.add("first", relu, {x}).value();
    SoftmaxAttributes softmax{.axis = 1};
    const TensorId b = graph_.add("second", softmax, {a}).value();
    const TensorId flat = graph_.add("flat", ReshapeAttributes{}, {b}, {256}).value();
    graph_.mark_output(graph_.add("third", relu, {flat}).value());
    schedule_.lanes.resize(2);
    schedule_.lanes[0] = {{.slice = {0, 1, 0, 32}}, {.slice = {.op = 1}}};
    schedule_.lanes[1] = {{.slice = {0, 1, 32, 64}}, {.slice = {.op = 3}}};
    ASSERT_TRUE(derive_waits(graph_, &schedule_).ok());
    ASSERT_TRUE(check_schedule(graph_, schedule_).ok());
  }
  void expect_refused(const std::string& reason) {
    const Status status = check_schedule(graph_, schedule_);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(reason));
  }

  Graph graph_;
  Schedule schedule_;
};

TEST_F(CheckSchedule, MissingOperator) {
  schedule_.lanes[1].pop_back();
  expect_refused("no lane runs third");
}

TEST_F(CheckSchedule, MissingSlice) {
  schedule_.lanes[1].erase(schedule_.lanes[1].begin());
  schedule_.lanes[0][1].waits.clear();
  expect_refused("no lane makes first from 32 on");
}

TEST_F(CheckSchedule, Overlap) {
  schedule_.lanes[1][0].slice.begin = 16;
  expect_refused("overlap");
}

TEST_F(CheckSchedule, OffTheGranularity) {
  schedule_.lanes[0][0].slice.end = 24;
  schedule_.lanes[1][0].slice.begin = 24;
  EXPECT_FALSE(check_schedule(graph_, schedule_).ok());
}

TEST_F(CheckSchedule, Alias) {
  schedule_.lanes[1].push_back({.slice = {.op = 2}});
  expect_refused("never launched");
}

TEST_F(CheckSchedule, UnknownOperator) {
  schedule_.lanes[1].push_back({.slice = {.op = 17}});
  expect_refused("does not exist");
}

TEST_F(CheckSchedule, MissingWait) {
  schedule_.lanes[1][1].waits.clear();
  expect_refused("does not wait for second");
}

TEST_F(CheckSchedule, WaitTooShort) {
  schedule_.lanes[1][1].waits[0].count = 1;
  expect_refused("does not wait for second");
}

TEST_F(CheckSchedule, WaitForItself) {
  schedule_.lanes[1][1].waits[0].lane = 1;
  expect_refused("not another lane");
}

TEST_F(CheckSchedule, WaitForMoreThanThereIs) {
  schedule_.lanes[1][1].waits[0].count = 3;
  expect_refused("which has 2");
}

TEST_F(CheckSchedule, TwoWaitsForOneLane) {
  schedule_.lanes[1][1].waits.push_back({0, 1});
  expect_refused("not one per lane");
}

TEST_F(CheckSchedule, Cycle) {
  schedule_.lanes[0][0].waits = {{1, 2}};
  expect_refused("second");
  expect_refused("third");
  expect_refused("->");
}

// Whatever is taken from, or added to, a valid random schedule, the check finds it.
TEST(CheckScheduleProperty, FindsInjectedFaults) {
  int tried = 0;
  for (uint64_t seed = 200; seed < 280; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, 20);
    const Schedule valid = random_schedule(random, graph, 2);
    ASSERT_TRUE(check_schedule(graph, valid).ok());
    Schedule schedule = valid;
    auto& lane = schedule.lanes[random.integer(0, 1)];
    if (lane.empty()) continue;
    const auto at = lane.begin() + random.integer(0, static_cast<int64_t>(lane.size()) - 1);
    switch (random.integer(0, 2)) {
      case 0:
        lane.erase(at);
        break;
      case 1:
        lane.push_back(*at);
        break;
      default:
        if (at->waits.empty()) continue;
        at->waits.clear();  // minimal, so that each is missed
        break;
    }
    EXPECT_FALSE(check_schedule(graph, schedule).ok()) << "seed " << seed;
    ++tried;
  }
  EXPECT_GT(tried, 40);
}

}  // namespace
}  // namespace tandem
