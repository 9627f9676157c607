#pragma once

#include <cstdint>
#include <utility>

#include "otlp/profiles_text.h"
#include "otlp/sender.h"
#include "otlp/text_output.h"

namespace tributary::otlp {

// Prints samples as text to a file descriptor that the caller owns. Its errors are those of TextOutput. The samples
// that FormatRequest left out are in the result.
class TextSender : public ProfilesSender {
 public:
  TextSender(int fd, TextOptions options) : options_(std::move(options)), output_(fd) {}

  SendResult Send(const ProfilesRequest& request, const RequestIdentity& identity, int64_t timeout_ns) override;
  void Cancel() override { output_.Cancel(); }

 protected:
  TextOutput& output() { return output_; }

 private:
  const TextOptions options_;
  TextOutput output_;
  uint64_t left_out_samples_ = 0;  // of the request that is being printed
};

}  // namespace tributary::otlp
