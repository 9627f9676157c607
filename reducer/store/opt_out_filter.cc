#include "reducer/store/opt_out_filter.h"

namespace tributary::store {

OptOutFilter::OptOutFilter(OptOutList* list, const RowBatch& batch, const SessionDictionary& dictionary)
    : list_(list != nullptr && !list->IsEmpty() ? list : nullptr),
      node_id_(batch.node->node_id),
      dictionary_(dictionary) {}

bool OptOutFilter::DropsThread(ThreadRef ref) {
  if (processes_.empty()) processes_.resize(dictionary_.counts().processes);
  const ProcessRef of = dictionary_.thread(ref).process;
  Answer& answer = processes_[of.value];
  if (answer == Answer::kUnasked) {
    const Process& process = dictionary_.process(of);
    answer = list_->Drops(node_id_, dictionary_.string(process.container_id), dictionary_.string(process.cgroup_path))
                 ? Answer::kDropped
                 : Answer::kStored;
  }
  return answer == Answer::kDropped;
}

bool OptOutFilter::DropsEvent(const ProcessEvent& event) {
  if (event_ == Answer::kUnasked || event.container_id != event_container_ || event.cgroup_path != event_cgroup_) {
    event_container_ = event.container_id;
    event_cgroup_ = event.cgroup_path;
    event_ = list_->Drops(node_id_, dictionary_.string(event.container_id), dictionary_.string(event.cgroup_path))
                 ? Answer::kDropped
                 : Answer::kStored;
  }
  return event_ == Answer::kDropped;
}

}  // namespace tributary::store
