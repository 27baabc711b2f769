// Which lanes the protocol is tested on.
#pragma once

#include <string>

#include "profile/lane_crew.h"
#include "tandem/session.h"

namespace tandem::testing {

struct LaneSetup {
  std::string name;
  int cpu_lanes;
  int queue_lanes;
  Feeder feeder;
  SyncMechanism mechanism;
  SharedMemoryKind memory = SharedMemoryKind::kFineAtomics;
};

inline const LaneSetup kLaneSetups[] = {
    LaneSetup{"OneCpu", 1, 0, Feeder::kAuto, SyncMechanism::kSvm},
    LaneSetup{"TwoCpus", 2, 0, Feeder::kAuto, SyncMechanism::kSvm},
    LaneSetup{"OneQueue", 0, 1, Feeder::kAuto, SyncMechanism::kSvm},
    LaneSetup{"OneQueueEvent", 0, 1, Feeder::kAuto, SyncMechanism::kEvent},
    LaneSetup{"CpuFeedsQueue", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kSvm},
    LaneSetup{"QueueWithFeeder", 1, 1, Feeder::kOwnThread, SyncMechanism::kSvm},
    LaneSetup{"CpuFeedsQueueEvent", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kEvent},
    LaneSetup{"QueueWithFeederEvent", 1, 1, Feeder::kOwnThread, SyncMechanism::kEvent},
    LaneSetup{"TwoCpusAndQueue", 2, 1, Feeder::kFirstCpuLane, SyncMechanism::kSvm},
    LaneSetup{"TwoCpusAndQueueEvent", 2, 1, Feeder::kOwnThread, SyncMechanism::kEvent},
    LaneSetup{"TwoQueues", 1, 2, Feeder::kOwnThread, SyncMechanism::kSvm},
    LaneSetup{"TwoQueuesEvent", 1, 2, Feeder::kOwnThread, SyncMechanism::kEvent},
    LaneSetup{"CpuFeedsTwoQueuesEvent", 2, 2, Feeder::kFirstCpuLane, SyncMechanism::kEvent},
    LaneSetup{"CpuFeedsQueuePinned", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kPinned},
    LaneSetup{"TwoCpusAndQueuePinned", 2, 1, Feeder::kOwnThread, SyncMechanism::kPinned},
    LaneSetup{"OneQueueFinish", 0, 1, Feeder::kAuto, SyncMechanism::kFinish},
    LaneSetup{"CpuFeedsQueueFinish", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kFinish},
    LaneSetup{"QueueWithFeederFinish", 1, 1, Feeder::kOwnThread, SyncMechanism::kFinish},
    LaneSetup{"TwoCpusAndTwoQueuesFinish", 2, 2, Feeder::kFirstCpuLane, SyncMechanism::kFinish},
    LaneSetup{"TwoQueuesWithFeedersFinish", 2, 2, Feeder::kOwnThread, SyncMechanism::kFinish},
    LaneSetup{"TwoCpusAndTwoQueuesFinishWithOwnMemory", 2, 2, Feeder::kFirstCpuLane,
              SyncMechanism::kFinish, SharedMemoryKind::kCoarse},
    LaneSetup{"QueueWithOwnMemoryPinned", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kPinned,
              SharedMemoryKind::kCoarse},
    LaneSetup{"QueueWithOwnMemory", 0, 1, Feeder::kAuto, SyncMechanism::kEvent,
              SharedMemoryKind::kCoarse},
    LaneSetup{"CpuFeedsQueueWithOwnMemory", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kEvent,
              SharedMemoryKind::kCoarse},
    LaneSetup{"TwoCpusAndQueueWithOwnMemory", 2, 1, Feeder::kFirstCpuLane, SyncMechanism::kEvent,
              SharedMemoryKind::kNone},
    LaneSetup{"QueueWithOwnMemoryAndFeeder", 1, 1, Feeder::kOwnThread, SyncMechanism::kEvent,
              SharedMemoryKind::kCoarse},
    LaneSetup{"TwoQueuesWithOwnMemory", 1, 2, Feeder::kFirstCpuLane, SyncMechanism::kEvent,
              SharedMemoryKind::kCoarse},
    LaneSetup{"TwoQueuesWithOwnMemoryAndFeeders", 2, 2, Feeder::kOwnThread, SyncMechanism::kEvent,
              SharedMemoryKind::kCoarse}};

}  // namespace tandem::testing
