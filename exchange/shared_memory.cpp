// In place over mapped arenas: everyone says that its vector is ready, sums its slice of all vectors into all of them, and says so.
#include "exchange/task.hpp"
#include "transport/reduce.hpp"

namespace troupe::exchange {
namespace {

using transport::TagKind;

class SharedMemory final : public Task {
 public:
  using Task::Task;

 private:
  enum Signal : std::size_t { ready, written };

  void begin() override {
    tell(ready, [this] {
      if (task_.root)
        transport::broadcast_slice(kernels_, task_.arenas, rank(), *task_.root);
      else
        transport::reduce_slice(kernels_, task_.arenas, rank(), task_.scale);
      tell(written, [] {});
    });
  }

  /// `then` when everyone has told this rank the same.
  void tell(Signal signal, const Then& then) {
    missing_ = ranks() - 1;
    if (missing_ == 0) return then();
    for (const auto other : others()) {
      receive(other, TagKind::signal, signal, {}, [this, then] {
        if (--missing_ == 0) then();
      });
      send(other, TagKind::signal, signal, {}, [] {});
    }
  }

  std::size_t missing_ = 0;
};

}  // namespace

std::unique_ptr<Collective> make_shared_memory(Courier& courier, const core::Kernels& kernels, Group group,
                                               CollectiveTask task, Collective::Done done) {
  return std::make_unique<SharedMemory>(courier, kernels, std::move(group), std::move(task), std::move(done));
}

}  // namespace troupe::exchange
