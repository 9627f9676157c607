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
      bytes_ += store_->functions.BytesOf(entry.function);
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
  size_t bytes() const { return bytes_; }
  size_t weight() const { return bytes_ + entries_.size() * sizeof(Entry); }

 private:
  std::shared_ptr<CodeObjectStore> store_;
  absl::flat_hash_set<Entry> entries_;
  size_t bytes_ = 0;  // of the functions
};

CodeObjectTable::CodeObjectTable(std::shared_ptr<CodeObjectStore> store)
    : store_(std::move(store)), own_(std::make_unique<Layer>(store_)) {
  store_->tables.insert(this);
}

CodeObjectTable::~CodeObjectTable() {
  DropFailed();
  store_->tables.erase(this);
}

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
  child->group = group;
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
  store_->CountEntries(-static_cast<int64_t>(failed_.erase(KeyOf(object))));
}

void CodeObjectTable::Fail(const CodeObject& object, MonotonicNs now) {
  if (failed_.size() >= kFailedSweepAt) {
    const auto dropped =
        absl::erase_if(failed_, [now](const auto& item) { return now.value - item.second.value >= kRetryNs; });
    store_->CountEntries(-static_cast<int64_t>(dropped));
  }
  if (failed_.size() >= kFailedMax) DropFailed();
  if (failed_.insert_or_assign(KeyOf(object), now).second) store_->CountEntries(1);
}

void CodeObjectTable::DropFailed() {
  store_->CountEntries(-static_cast<int64_t>(failed_.size()));
  failed_ = {};
}

bool CodeObjectTable::HasFailed(const CodeObject& object, MonotonicNs now) const {
  const auto it = failed_.find(KeyOf(object));
  return it != failed_.end() && now.value - it->second.value < kRetryNs;
}

void CodeObjectTable::Trim() {
  const size_t entries = size(), used = bytes();
  if (!IsAbove(2, entries, used)) return;
  if (!promotes_) {
    promotes_ = true;
    bases_.push_back(std::exchange(own_, std::make_unique<Layer>(store_)));
  } else if (IsAbove(1, own_->size(), own_->bytes()) || IsAbove(3, entries, used)) {
    // The entries that were used are in the own layer, too. After a fork, some of them are only in bases: they are read
    // again.
    bases_.clear();
    bases_.push_back(std::exchange(own_, std::make_unique<Layer>(store_)));
  }
}

void CodeObjectTable::Clear() {
  own_ = std::make_unique<Layer>(store_);
  bases_.clear();
  DropFailed();
  promotes_ = false;
}

size_t CodeObjectTable::size() const {
  size_t sum = own_->size();
  for (const auto& base : bases_) sum += base->size();
  return sum;
}

size_t CodeObjectTable::bytes() const {
  size_t sum = own_->bytes();
  for (const auto& base : bases_) sum += base->bytes();
  return sum;
}

size_t CodeObjectTable::Weight() const {
  size_t sum = own_->weight() + failed_.size() * sizeof(Entry);
  for (const auto& base : bases_) sum += base->weight() / static_cast<size_t>(base.use_count());
  return sum;
}

}  // namespace tributary
