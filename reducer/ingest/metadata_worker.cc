#include "reducer/ingest/metadata_worker.h"

#include <pthread.h>

#include <utility>

#include "reducer/metadata/entity_timeline.h"

namespace tributary::ingest {
namespace {

size_t BytesOf(const MetadataUpdate& update) {
  size_t bytes = sizeof(update);
  for (const Entity& entity : update.entities) bytes += EntityBytes(entity);
  return bytes;
}

}  // namespace

MetadataWorker::MetadataWorker(Options options, MetadataSink& sink, Metrics& metrics)
    : options_(options),
      sink_(sink),
      held_back_(metrics.AddCounter("tributary_metadata_held_back_total",
                                    "Times that an update of metadata did not fit into its queue; reading from the "
                                    "sender pauses meanwhile")),
      share_({.bytes_max = options.queue_bytes_max, .batches_max = options.queue_updates_max}),
      thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "metadata in");
}

MetadataWorker::~MetadataWorker() { Stop(); }

void MetadataWorker::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool MetadataWorker::IsFull() const {
  return stopping_ || share_.bytes() >= options_.queue_bytes_max || items_.size() >= options_.queue_updates_max;
}

bool MetadataWorker::TryConnect(const MetadataSender& sender) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || connects_ >= options_.queue_updates_max) return false;
    ++connects_;
    items_.push_back({Kind::kConnect, sender, {}});
  }
  changed_.notify_one();
  return true;
}

// Always has space: it ends a connection, and the number of connections is limited.
void MetadataWorker::Disconnect(const MetadataSender& sender) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    items_.push_back({Kind::kDisconnect, sender, {}});
  }
  changed_.notify_one();
}

bool MetadataWorker::TryTake(const MetadataSender& sender, MetadataUpdate update) {
  const size_t bytes = BytesOf(update);
  {
    std::lock_guard lock(mutex_);
    if (IsFull() || !share_.Allows(sender.id, bytes)) {
      held_back_.Add();
      return false;
    }
    share_.Add(sender.id, bytes);
    items_.push_back({Kind::kUpdate, sender, std::move(update)});
  }
  changed_.notify_one();
  return true;
}

void MetadataWorker::Run() {
  while (std::optional<Item> item = Pop()) Apply(*std::move(item));
}

std::optional<MetadataWorker::Item> MetadataWorker::Pop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !items_.empty(); });
  if (items_.empty()) return std::nullopt;
  std::optional<Item> item(std::move(items_.front()));
  items_.pop_front();
  if (item->kind == Kind::kConnect) --connects_;
  if (item->kind == Kind::kUpdate) share_.Remove(item->sender.id);
  return item;
}

void MetadataWorker::Apply(Item item) {
  switch (item.kind) {
    case Kind::kConnect:
      return sink_.Connected(item.sender);
    case Kind::kDisconnect:
      return sink_.Disconnected(item.sender);
    case Kind::kUpdate:
      return sink_.Take(item.sender, std::move(item.update));
  }
}

}  // namespace tributary::ingest
