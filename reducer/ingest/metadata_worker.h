#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/metrics.h"
#include "reducer/ingest/metadata_desk.h"
#include "reducer/ingest/queue_share.h"
#include "reducer/metadata/metadata_sink.h"

namespace tributary::ingest {

// Passes the metadata of all shards' sessions to `sink` on a thread of its own. So an event loop waits neither for the
// locks of the metadata, which queries hold, nor for a thread that applies a large snapshot. Updates wait in a bounded
// queue. If the queue is full, or if the sender has filled its share (QueueShare), the sender's session stops reading,
// and its updates wait at the sender: none is lost. A held-back update is counted.
//
// Memory: at most `queue_bytes_max`, one update (256 KiB) for each sender above its share, and about 400 bytes for each
// connection that is not recorded yet.
class MetadataWorker final : public MetadataDesk {
 public:
  struct Options {
    size_t queue_bytes_max = 32u << 20;  // in memory
    size_t queue_updates_max = 4'096;    // of updates and new connections
  };
  // Starts the thread. `sink` and `metrics` must outlive the worker.
  MetadataWorker(Options options, MetadataSink& sink, Metrics& metrics);
  ~MetadataWorker();  // Stop

  // MetadataDesk, on any thread
  bool TryConnect(const MetadataSender& sender) override;
  void Disconnect(const MetadataSender& sender) override;
  bool TryTake(const MetadataSender& sender, MetadataUpdate update) override;

  // Passes the queued updates to the sink, and ends the thread. Later calls of the methods above do nothing.
  void Stop();

 private:
  enum class Kind { kConnect, kDisconnect, kUpdate };
  struct Item {
    Kind kind{};
    MetadataSender sender;
    MetadataUpdate update;
  };

  void Run();
  std::optional<Item> Pop();
  void Apply(Item item);
  bool IsFull() const;  // the caller must hold mutex_

  const Options options_;
  MetadataSink& sink_;
  Counter& held_back_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<Item> items_;
  QueueShare share_;
  size_t connects_ = 0;  // of items_
  bool stopping_ = false;
  std::thread thread_;  // started last
};

}  // namespace tributary::ingest
