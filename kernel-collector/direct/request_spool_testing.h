#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "intake/testing/fake_spool_storage_testing.h"
#include "kernel-collector/direct/request_spool.h"
#include "kernel-collector/direct/spool_testing.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

// For tests: a RequestSpool and its disk.

namespace tributary {

inline constexpr RequestSpool::Session kSession{7};

class RequestSpoolTest : public testing::Test {
 protected:
  RequestSpoolTest() { Open(); }
  // Starts a new collector.
  void Open(uint64_t bytes_max = 1 << 20, size_t requests_max = 1000) {
    spool_.reset();
    auto spool = RequestSpool::Open(bytes_max, std::make_unique<BorrowedStorage>(disk_, faults_), clock_, metrics_,
                                    requests_max);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }
  // Appends a request with `first` as its number and its number of samples.
  absl::Status Append(uint64_t first, bool in_doubt = false, const RequestSpool::Session& session = kSession) {
    DirectRequest request;
    request.samples.reset(new otlp::ProfilesRequest);
    request.identity = {.sender = "n", .session = session, .first = first};
    request.counts = SampleCounts(first);
    request.in_doubt = in_doubt;
    return spool_->Append(request);
  }
  std::vector<uint64_t> Drain() {
    std::vector<uint64_t> numbers;
    while (true) {
      const absl::StatusOr<RequestSpool::Front> front = spool_->ReadFront();
      if (!front.ok()) {
        EXPECT_TRUE(absl::IsNotFound(front.status())) << front.status();
        break;
      }
      numbers.push_back(front->request.identity.first);
      spool_->PopFront();
    }
    return numbers;
  }
  uint64_t Failures(const char* operation) {
    return metrics_.AddCounter("tributary_spool_failures_total", "", {{"operation", operation}}).value();
  }

  intake::FakeSpoolStorage disk_{1};
  DiskFaults faults_;
  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<RequestSpool> spool_;
};

}  // namespace tributary
