// A model made ready on a platform: planned, packed, compiled, and run any number of times.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tandem/model.h"
#include "tandem/platform.h"
#include "tandem/status.h"
#include "tandem/tensor.h"

namespace tandem {

struct Schedule;
struct Timeline;
class Tracer;

// How lanes tell each other of progress.
enum class SyncMechanism {
  kAuto,    // whichever of svm, event and finish costs least, as measured on this machine
  kSvm,     // counters in fine-grained shared virtual memory, polled by both sides
  kEvent,   // OpenCL events and user events
  kPinned,  // counters in mapped memory, polled by both sides; OpenCL does not promise that it
            // works
  kFinish,  // work is enqueued when what it waits for is there, and awaited by clFinish
};
const char* to_string(SyncMechanism mechanism);  // "auto", "svm", ...

// Where sessions have the costs of slices from.
enum class CostSource {
  kAuto,        // predictors that `tandem train` saved for this platform, else calibration
  kPredicted,   // predictors only
  kCalibrated,  // some seconds of measurements of the model at hand, kept for the next time
};

struct SessionOptions {
  std::string strategy = "joint";  // see `tandem run --help`
  // How long strategies `joint` and `exact` search: that many evaluations of schedules at most (0:
  // what is worth it), and that many milliseconds (0: no limit). The same seed and number
  // of evaluations give the same schedule for the same costs, unless time runs out.
  int64_t search_evaluations = 0;
  // What is worth it: with two lanes, no more than takes a few percent of the time to make a session
  // ready; if thoroughly, as for plans that are kept, whatever there may be something to gain from.
  bool search_thoroughly = false;
  double search_budget_ms = 0;
  uint64_t search_seed = 1;
  // Where operators go whatever the strategy thinks: "OPERATOR=LANE", or "OPERATOR=LANE:SHARE" for
  // a share of its output, above 0 and at most 1; the rest goes to other lanes. Not with strategies
  // `cpu` and `gpu`.
  std::vector<std::string> pins;
  // A file of save_plan() or `tandem plan`: its schedule is used, no strategy asked, and nothing
  // measured. kFailedPrecondition if it was made for another model, platform, source of costs or
  // version of Tandem; the message says which.
  std::string plan;
  SyncMechanism sync = SyncMechanism::kAuto;
  // A run that takes longer than this fails with kDeadlineExceeded.
  std::chrono::milliseconds deadline{10'000};
  // How long a device polls for a CPU lane's word (mechanisms svm and pinned): it computes nothing
  // meanwhile, and where it is the host's processor, nothing else does on its cores. A wait that
  // takes longer makes the session change to events (or finish), once and for all; the run is
  // repeated.
  std::chrono::milliseconds device_spin_limit{100};
  // When a lane fails in mid-run, run once more with everything on the best lane that is left.
  bool fall_back = false;
  CostSource costs = CostSource::kAuto;
  // A file that `tandem train` wrote. Empty: this platform's, where that command puts it.
  std::string predictors;
  // Seconds that may go into calibration where no earlier one fits; its results are kept in
  // `calibration_dir` (empty: $XDG_CACHE_HOME/tandem/calibration, "none": not kept).
  double calibration_seconds = 5;
  std::string calibration_dir;
  // No reuse of activation memory, so that every tensor can be read after a run.
  bool keep_all = false;
  // Looks through every tensor after each run, and fails the run if an input or a weight holds a
  // NaN, or an operator makes a NaN or an infinity: kInvalidArgument, naming the first such
  // operator, the element, and the slice and lane that made it. Outputs are there all the same, and
  // tensor() can be called. As keep_all, it takes memory, and time that last_run_us() does not
  // count.
  bool check_numerics = false;
  // Is told what each lane did in the runs that it wants (src/report/timeline.h). Null: nothing is
  // recorded, and runs cost what they do.
  std::shared_ptr<Tracer> tracer;
  // Watches the lanes' speeds while the session runs, and plans again where a lane has not been as
  // fast as predicted for some runs: throttled, or with another process on its cores. One run in
  // eight is recorded for that (more while a lane is off), which makes it a little slower. A run
  // that finds out that the schedule is to change takes as much longer as planning does, at most a
  // tenth of all time; what is packed is not packed again. So that packed weights are good for any
  // schedule, activations do not reuse each other's memory, as with keep_all. Not with strategies
  // `cpu` and `gpu`, nor with `schedule`; costs are looked up or measured even with `plan`.
  bool adapt = false;
  // Runs this schedule instead of asking a strategy. Tests use it.
  std::shared_ptr<const Schedule> schedule;
};

// What one lane did to become ready.
struct LanePreparation {
  std::string lane;
  double pack_ms = 0;         // choosing implementations and packing weights
  double compile_ms = 0;      // compiling programs, or loading them from the cache
  double warm_ms = 0;         // launching kernels once: drivers finish compiling then
  int programs_compiled = 0;  // from source
  int programs_cached = 0;    // from the cache on disk
  size_t bytes = 0;           // in packed weights and scratch
};

// What a session did to become ready, in milliseconds. Model::load_times() says what went before.
struct SessionTimes {
  double calibrate_ms = 0;   // measuring, which is kept for the next time
  double predictors_ms = 0;  // reading them
  double schedule_ms = 0;    // predicting costs, and the strategy's search
  double memory_ms = 0;
  double bind_ms = 0;                  // all lanes at once, each on its own thread
  std::vector<LanePreparation> lanes;  // of bind_ms, those with something to do
};

// What a session's tensors take, in bytes. Weights that lanes pack are in LanePreparation.
struct SessionMemory {
  size_t arena = 0;          // activations, and constants that lanes do not pack
  size_t without_reuse = 0;  // what the arena would be if every tensor had a place of its own
  // The most that is in use at any one time, which no plan can be below. Known where a single lane
  // has all slices; else zero.
  size_t least = 0;
  size_t padding = 0;    // of without_reuse: innermost extents rounded up to cache lines
  size_t constants = 0;  // of the arena: constants that operators read where they lie (tables)
};

// What a session with SessionOptions::adapt has found out.
struct Adaptation {
  // By lane of the platform, how many times as long as its costs say its slices take: what the last
  // decision went by. Empty without `adapt`.
  std::vector<double> slowdown;
  int recorded = 0;    // runs
  int planned = 0;     // times that the schedule was thought over
  int changed = 0;     // ... and another one taken
  double plan_ms = 0;  // altogether, and for getting the new schedules ready
};

class Session {
 public:
  static StatusOr<std::unique_ptr<Session>> create(const Model& model,
                                                   std::shared_ptr<Platform> platform,
                                                   const SessionOptions& options = {});
  // On the machine's default platform, made at the first call and kept.
  static StatusOr<std::unique_ptr<Session>> create(const Model& model,
                                                   const SessionOptions& options = {});
  // A run in progress in another thread is cancelled and waited for. Model and platform may be gone
  // before the session is.
  virtual ~Session() = default;

  // One inference. Inputs and outputs are dense row-major, in the model's order; outputs are
  // resized. Not reentrant: kFailedPrecondition while another thread is in run(). After an error
  // the session can be used again.
  virtual Status run(const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs) = 0;
  // Makes the run in progress, if any, return kCancelled. Callable from any thread.
  virtual void cancel() = 0;

  // Of the last run; with `adapt`, the next one may change it.
  virtual const Schedule& schedule() const = 0;
  // When the schedule's slices were expected to run (src/report/timeline.h); no lanes if what they
  // cost is not known.
  virtual const Timeline& prediction() const = 0;
  // Writes the schedule to a file, for SessionOptions::plan of later sessions.
  virtual Status save_plan(const std::string& path) const = 0;
  virtual SyncMechanism sync() const = 0;  // the one in use, never kAuto; a run may change it
  virtual const SessionTimes& times() const = 0;
  // Duration of the last successful run(), from the input being in place to the last output ready.
  virtual double last_run_us() const = 0;
  // The value of a tensor of the graph after the last run, dense row-major. kFailedPrecondition if
  // its memory was reused meanwhile: see keep_all.
  virtual StatusOr<HostTensor> tensor(const std::string& name) const = 0;
  // kDeadlineExceeded etc. happened and another strategy ran instead: why. Empty otherwise.
  virtual const std::string& fall_back_reason() const = 0;
  virtual const SessionMemory& memory() const = 0;
  virtual const Adaptation& adaptation() const = 0;
};

}  // namespace tandem
