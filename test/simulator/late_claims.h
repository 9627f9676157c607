#pragma once

#include <memory>
#include <string>
#include <vector>

#include "intake/testing/fake_spool_storage_testing.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// A disk that reports overwritten bytes as durable half a second before they are durable. The spool overwrites only
// claims. A claim says in which session the collector sends the batches of a spool segment (docs/spool.md). So this
// disk breaks the rule that a claim is durable before the batches of the claim are sent.
class LateClaims final : public intake::SpoolStorage {
 public:
  LateClaims(intake::FakeSpoolStorage& disk, SimProcess& process) : disk_(disk), process_(process) {}

  absl::StatusOr<std::vector<std::string>> List() override { return disk_.List(); }
  absl::StatusOr<std::string> Read(const std::string& name) override { return disk_.Read(name); }
  absl::Status Append(const std::string& name, std::string_view bytes) override { return disk_.Append(name, bytes); }
  absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) override {
    process_.After(500 * kNsPerMs, [this, name, offset, bytes = std::string(bytes)] {
      (void)disk_.Overwrite(name, offset, bytes);
      (void)disk_.Sync(name);
    });
    return disk_.Sync(name);
  }
  absl::Status Sync(const std::string& name) override { return disk_.Sync(name); }
  absl::Status Truncate(const std::string& name, uint64_t bytes) override { return disk_.Truncate(name, bytes); }
  absl::Status Remove(const std::string& name) override { return disk_.Remove(name); }

 private:
  intake::FakeSpoolStorage& disk_;
  SimProcess& process_;
};

}  // namespace tributary::sim
