#include "runtime/prepared_schedule.h"

namespace tandem {

StatusOr<PreparedSchedule> allocate_memory(const Graph& graph, Schedule schedule,
                                           const LaneCrew& crew, const MemoryPlanOptions& options) {
  PreparedSchedule prepared;
  prepared.schedule = std::move(schedule);
  prepared.plan = plan_memory(graph, prepared.schedule, options);
  TANDEM_ASSIGN_OR_RETURN(Arena arena,
                          Arena::create(graph, prepared.plan, Arena::allocator_for(crew.lanes())));
  prepared.arena = std::make_shared<const Arena>(std::move(arena));
  return prepared;
}

Status PreparedSchedule::bind(const Graph& graph, std::shared_ptr<LaneCrew> crew,
                              const ExecutorOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(
      executor, Executor::create(graph, schedule, arena->bindings(), std::move(crew), options));
  return {};
}

Status PreparedSchedule::run(const Graph& graph, const std::vector<HostTensor>& inputs,
                             std::vector<HostTensor>* outputs, const std::atomic<bool>* cancelled) {
  const TensorBindings& bindings = arena->bindings();
  const auto prepare = [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      copy_to_view(inputs[i], bindings[graph.inputs()[i]]);
    }
  };
  const auto collect = [&] {
    outputs->resize(graph.outputs().size());
    for (size_t i = 0; i < outputs->size(); ++i) {
      const Tensor& tensor = graph.tensor(graph.outputs()[i]);
      HostTensor& output = (*outputs)[i];
      if (output.type != tensor.type || output.dims != tensor.dims) {
        output = HostTensor(tensor.type, tensor.dims);
      }
      copy_from_view(bindings[graph.outputs()[i]], output);
    }
  };
  return executor->run(prepare, collect, cancelled);
}

}  // namespace tandem
