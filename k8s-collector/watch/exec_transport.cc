#include "k8s-collector/watch/exec_transport.h"

#include <string>
#include <utility>

namespace tributary {
namespace {

constexpr int kUnauthorized = 401;

class ExecRequest : public ApiTransport::Request, public ExecPlugin::Waiter {
 public:
  ExecRequest(HttpTransport& below, ExecPlugin& plugin, std::string_view target, std::string_view accept,
              ApiTransport::Callbacks callbacks)
      : below_(below), plugin_(plugin), target_(target), accept_(accept), callbacks_(std::move(callbacks)) {}
  ~ExecRequest() override { plugin_.Forget(*this); }

  void Start() {
    const ExecPlugin::Credential* credential = plugin_.current();
    if (credential != nullptr) {
      Send(*credential);
    } else {
      plugin_.Await(*this);
    }
  }

  void OnCredential(const absl::StatusOr<const ExecPlugin::Credential*>& credential) override {
    if (credential.ok()) {
      Send(**credential);
    } else {
      End(credential.status());
    }
  }

 private:
  void Send(const ExecPlugin::Credential& credential) {
    serial_ = credential.serial;
    is_refused_ = false;
    below_.Use(credential.secrets);
    sent_ =
        below_.Get(target_, accept_,
                   {.on_answer = [this](int status, int64_t retry_after_s) { OnAnswer(status, retry_after_s); },
                    .on_bytes = [this](std::string_view bytes) { return !is_refused_ && callbacks_.on_bytes(bytes); },
                    .on_end = [this](absl::Status status) { OnSentEnd(std::move(status)); }});
  }

  void OnAnswer(int status, int64_t retry_after_s) {
    is_refused_ = status == kUnauthorized;
    if (is_refused_) return;
    plugin_.OnAccepted(serial_);
    callbacks_.on_answer(status, retry_after_s);
  }

  void OnSentEnd(absl::Status status) {
    if (!is_refused_) return End(std::move(status));
    plugin_.OnRefused(serial_);
    sent_.reset();
    if (std::exchange(was_refused_, true)) return End(plugin_.Refused());
    Start();
  }

  void End(absl::Status status) {
    auto on_end = std::move(callbacks_.on_end);
    on_end(std::move(status));  // may destroy this
  }

  HttpTransport& below_;
  ExecPlugin& plugin_;
  const std::string target_, accept_;
  ApiTransport::Callbacks callbacks_;
  std::unique_ptr<ApiTransport::Request> sent_;
  uint64_t serial_ = 0;       // of the credentials that were sent
  bool is_refused_ = false;   // the current answer
  bool was_refused_ = false;  // an earlier answer
};

}  // namespace

std::unique_ptr<ApiTransport::Request> ExecTransport::Get(std::string_view target, std::string_view accept,
                                                          Callbacks callbacks) {
  auto request = std::make_unique<ExecRequest>(below_, plugin_, target, accept, std::move(callbacks));
  request->Start();
  return request;
}

}  // namespace tributary
