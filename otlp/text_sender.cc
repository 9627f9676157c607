#include "otlp/text_sender.h"

namespace tributary::otlp {

SendResult TextSender::Send(const ProfilesRequest& request, const RequestIdentity& identity, int64_t timeout_ns) {
  SendResult result = output_.Print(
      identity,
      [&] {
        RequestText made = FormatRequest(request, options_);
        left_out_samples_ = made.left_out_samples;
        return std::move(made.text);
      },
      timeout_ns);
  if (result.status.ok() && left_out_samples_ > 0) {
    result.left_out_samples = left_out_samples_;
    result.message = "the text of the request is too large: samples are left out";
  }
  return result;
}

}  // namespace tributary::otlp
