// ar: the MPI library's all-reduce (MPI_Iallreduce), where the endpoint has one. nccl: NCCL's. The library chooses the order of the sum.
#include "transport/exchange/collectives/task.hpp"

namespace troupe::exchange {
namespace {

class Library final : public Task {
 public:
  using Task::Task;

 private:
  void begin() override {
    sum(task_.vector, [this] {
      if (task_.scale != 1) kernels_.scale(task_.vector, task_.scale);
    });
  }
};

}  // namespace

std::unique_ptr<Collective> make_library(OperationQueue& operations, const core::Kernels& kernels, Group group,
                                         CollectiveTask task, Collective::Done done) {
  return std::make_unique<Library>(operations, kernels, std::move(group), std::move(task), std::move(done));
}

}  // namespace troupe::exchange
