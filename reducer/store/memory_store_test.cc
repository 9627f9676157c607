#include "reducer/store/memory_store.h"

#include <gtest/gtest.h>

#include <memory>

#include "reducer/store/store_conformance_testing.h"

namespace tributary::store {
namespace {

class MemoryBackend : public StoreBackend {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options, const Clock& clock,
                                              Metrics& metrics) override {
    return std::make_unique<MemoryStore>(data_, options, clock, metrics);
  }
  void FailCommits(bool fail) override {
    std::optional<absl::Status>& error = data_->shards[0].commit_error;
    error.reset();
    if (fail) error = absl::ResourceExhaustedError("full");
  }

 private:
  const std::shared_ptr<MemoryData> data_ = std::make_shared<MemoryData>();
};

INSTANTIATE_STORE_CONFORMANCE(Memory, [] { return std::make_unique<MemoryBackend>(); });

}  // namespace
}  // namespace tributary::store
