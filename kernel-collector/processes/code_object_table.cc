#include "kernel-collector/processes/code_object_table.h"

#include <utility>

namespace tributary {

// Owns one reference to the function of each entry.
class CodeObjectTable::Layer {
 public:
  explicit Layer(std::shared_ptr<CodeObjectStore> store) : store_(std::move(store)) {}
  ~Layer() {
    for (const Entry& entry : entries_) store_->functions.Unref(entry.function);
    store_->CountEntries(-static_cast<int64_t>(entries_.size()));
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const Entry* Find(const Entry& key) const {
    const auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : &*it;
  }
  // Takes over one reference.
  void Insert(const Entry& entry) {
    if (entries_.insert(entry).second) {
      store_->CountEntries(1);
    } else {
      store_->functions.Unref(entry.function);  // the entry is known
    }
  }
  void Share(const Entry& entry) {
    store_->functions.Ref(entry.function);
    Insert(entry);
  }
  void ShareAll(const Layer& other) {
    for (const Entry& entry : other.entries_) Share(entry);
  }
  size_t size() const { return entries_.size(); }

 private:
  std::shared_ptr<CodeObjectStore> store_;
  absl::flat_hash_set<Entry> entries_;
};

CodeObjectTable::CodeObjectTable(std::shared_ptr<CodeObjectStore> store)
    : store_(std::move(store)), own_(std::make_unique<Layer>(store_)) {
  store_->tables.insert(this);
}

CodeObjectTable::~CodeObjectTable() { store_->tables.erase(this); }

void CodeObjectTable::Freeze() {
  if (own_->size() == 0) return;
  std::unique_ptr<Layer> layer = std::exchange(own_, std::make_unique<Layer>(store_));
  while (!bases_.empty() && bases_.back()->size() <= 2 * layer->size()) {
    layer->ShareAll(*bases_.back());
    bases_.pop_back();
  }
  bases_.push_back(std::move(layer));
}

std::shared_ptr<CodeObjectTable> CodeObjectTable::Fork() {
  Freeze();
  auto child = std::make_shared<CodeObjectTable>(store_);
  child->bases_ = bases_;
  child->used_at = used_at;
  return child;
}

const PooledFunction* CodeObjectTable::Find(const CodeObject& object) {
  const Entry key = KeyOf(object);
  const Entry* found = own_->Find(key);
  for (size_t i = bases_.size(); found == nullptr && i-- > 0;) {
    found = bases_[i]->Find(key);
    if (found != nullptr && promotes_) own_->Share(*found);
  }
  return found == nullptr ? nullptr : &store_->functions.At(found->function);
}

void CodeObjectTable::Insert(const CodeObject& object, FunctionPool::Number number) {
  own_->Insert({object.address, object.check, number});
  failed_.erase(KeyOf(object));
}

void CodeObjectTable::Fail(const CodeObject& object, MonotonicNs now) {
  if (failed_.size() >= kFailedMax) failed_.clear();
  failed_.insert_or_assign(KeyOf(object), now);
}

bool CodeObjectTable::HasFailed(const CodeObject& object, MonotonicNs now) const {
  const auto it = failed_.find(KeyOf(object));
  return it != failed_.end() && now.value - it->second.value < kRetryNs;
}

void CodeObjectTable::Trim() {
  if (size() <= kEntriesMax) return;
  if (!promotes_) {
    promotes_ = true;
    bases_.push_back(std::exchange(own_, std::make_unique<Layer>(store_)));
  } else if (own_->size() > kEntriesMax / 2) {
    // The entries that were used are in the own layer, too.
    bases_.clear();
    bases_.push_back(std::exchange(own_, std::make_unique<Layer>(store_)));
  }
}

void CodeObjectTable::Clear() {
  own_ = std::make_unique<Layer>(store_);
  bases_.clear();
  failed_.clear();
  promotes_ = false;
}

size_t CodeObjectTable::size() const {
  size_t sum = own_->size();
  for (const auto& base : bases_) sum += base->size();
  return sum;
}

}  // namespace tributary
