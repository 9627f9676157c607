#include "kernel-collector/unwind/retire_queue.h"

#include <utility>

namespace tributary {

struct RetireQueue::State : std::enable_shared_from_this<RetireQueue::State> {
  using Frees = std::vector<std::function<void()>>;

  State(UnwindMaps& m, Executor& e, uint64_t b) : maps(m), executor(e), batch(b) {}

  void Begin();
  void End(Frees freed, bool ok);

  UnwindMaps& maps;
  Executor& executor;
  const uint64_t batch;
  Frees gathered;
  uint64_t cost = 0;  // cost of everything gathered
  bool running = false;
  bool flush = false;  // a caller needs the gathered space
  std::function<void()> on_freed;
};

void RetireQueue::State::Begin() {
  if (running || gathered.empty() || (!flush && cost < batch)) return;
  auto frees = std::make_shared<Frees>(std::exchange(gathered, {}));
  auto ok = std::make_shared<bool>(false);
  std::weak_ptr<State> weak = weak_from_this();
  UnwindMaps* kernel = &maps;
  running = executor.Submit([kernel, ok] { *ok = kernel->WaitGrace().ok(); },
                            [weak, ok, frees] {
                              if (auto state = weak.lock()) state->End(std::move(*frees), *ok);
                            });
  if (!running) {
    gathered = std::move(*frees);
    return;
  }
  cost = 0;
  flush = false;
}

void RetireQueue::State::End(Frees freed, bool ok) {
  running = false;
  if (!ok) {  // nothing may be reused; the next call tries again
    gathered.insert(gathered.begin(), std::make_move_iterator(freed.begin()), std::make_move_iterator(freed.end()));
    cost += batch;
    return;
  }
  for (auto& free : freed) free();
  Begin();
  if (on_freed) on_freed();
}

RetireQueue::RetireQueue(UnwindMaps& maps, Executor& executor, uint64_t batch)
    : state_(std::make_shared<State>(maps, executor, batch)) {}
RetireQueue::~RetireQueue() = default;

void RetireQueue::Retire(uint64_t cost, std::function<void()> free) {
  state_->gathered.push_back(std::move(free));
  state_->cost += cost;
  state_->Begin();
}

void RetireQueue::Flush() {
  state_->flush = !state_->gathered.empty();
  state_->Begin();
}

void RetireQueue::Retry() { state_->Begin(); }

void RetireQueue::OnFreed(std::function<void()> callback) { state_->on_freed = std::move(callback); }

bool RetireQueue::waiting() const { return state_->running || (state_->flush && !state_->gathered.empty()); }
bool RetireQueue::empty() const { return !state_->running && state_->gathered.empty(); }

}  // namespace tributary
