#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "otlp/curl_transfer.h"
#include "otlp/post_answer.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// The result of a POST.
struct PostResult {
  PostAnswer answer;  // what arrived of it
  CallResult error;   // its status is OK if the answer arrived as a whole
  // The receiver may have the whole request. It cannot accept a part of one.
  bool may_have_arrived = false;
};

// Sends POST requests over HTTP/1.1 to one URL, one at a time. It does not know what an answer means. Keeps the
// connection open for the next request, but for 5 minutes at most (curl_transfer.h).
//
// Only one thread at a time may use Send. Any thread may use Cancel.
class HttpPost {
 public:
  // Returns the errors of CurlTransfer::Make. `path` begins with '/'.
  static absl::StatusOr<std::unique_ptr<HttpPost>> Make(const TransportOptions& options, const std::string& path,
                                                        const std::string& content_type);

  // Sends `body`. Returns within `timeout_ns`. All errors may be retried: Unavailable, or DeadlineExceeded after
  // `timeout_ns`. After Cancel, returns Cancelled, and an answer without a head.
  PostResult Send(std::string_view body, int64_t timeout_ns);
  void Cancel() { transfer_->Cancel(); }

 private:
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  explicit HttpPost(std::unique_ptr<CurlTransfer> transfer) : transfer_(std::move(transfer)) {}
  bool AddHeader(const std::string& line);
  bool AddHeaders(const TransportOptions& options, const std::string& content_type);

  std::unique_ptr<curl_slist, FreeList> headers_;  // destroyed after transfer_, which refers to it
  const std::unique_ptr<CurlTransfer> transfer_;
};

}  // namespace tributary::otlp
