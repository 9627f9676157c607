#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "k8s-collector/watch/api_access.h"

typedef void CURL;
struct curl_slist;

namespace tributary {

// The options of a libcurl transfer that come from an ApiAccess: URL, proxy, TLS and credentials. It owns the lists
// that libcurl reads during the transfer, so it must outlive the transfer.
class CurlAccess {
 public:
  // Sets the options of a GET request for `target`. Returns the errors of SecretText for files that cannot be read, and
  // FailedPrecondition for a token that cannot be sent.
  absl::Status Apply(CURL* easy, const ApiAccess& access, std::string_view target, std::string_view accept);

 private:
  struct FreeList {
    void operator()(curl_slist* list) const;
  };
  using List = std::unique_ptr<curl_slist, FreeList>;
  static void Append(List& list, const std::string& line);
  absl::Status SetServer(CURL* easy, const ApiAccess& access, std::string_view target);
  absl::Status SetProxy(CURL* easy, const ApiAccess& access);
  absl::Status SetTls(CURL* easy, const ApiAccess& access);

  List headers_, connect_to_;
};

}  // namespace tributary
