#include "k8s-collector/watch/curl_loop.h"

#include <curl/curl.h>
#include <uv.h>

#include <algorithm>
#include <mutex>

#include "base/status.h"

namespace tributary {

struct CurlLoop::Impl {
  // A socket of libcurl. libuv's close callback frees it.
  struct Socket {
    uv_poll_t poll;
    Impl* owner = nullptr;
    curl_socket_t fd = CURL_SOCKET_BAD;
  };

  explicit Impl(Loop& on) : loop(on), timer(on, [this] { Act(CURL_SOCKET_TIMEOUT, 0); }) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    multi = curl_multi_init();
    TRIBUTARY_CHECK(multi != nullptr);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, OnSocket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, OnTimer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, this);
  }
  ~Impl() { curl_multi_cleanup(multi); }

  static int OnTimer(CURLM*, long timeout_ms, void* user) {
    auto& self = *static_cast<Impl*>(user);
    if (timeout_ms < 0) {
      self.timer.Stop();
    } else {
      self.timer.StartOnce(static_cast<uint64_t>(timeout_ms));  // 0: soon, but not inside this callback
    }
    return 0;
  }

  static int OnSocket(CURL*, curl_socket_t fd, int what, void* user, void* known) {
    auto& self = *static_cast<Impl*>(user);
    auto* socket = static_cast<Socket*>(known);
    if (what == CURL_POLL_REMOVE) {
      if (socket == nullptr) return 0;
      uv_poll_stop(&socket->poll);
      uv_close(reinterpret_cast<uv_handle_t*>(&socket->poll),
               [](uv_handle_t* handle) { delete static_cast<Socket*>(handle->data); });
      curl_multi_assign(self.multi, fd, nullptr);
      return 0;
    }
    if (socket == nullptr) {
      socket = new Socket{.poll = {}, .owner = &self, .fd = fd};
      if (uv_poll_init_socket(self.loop.raw(), &socket->poll, fd) != 0) {
        delete socket;
        return -1;
      }
      socket->poll.data = socket;
      curl_multi_assign(self.multi, fd, socket);
    }
    const int events = ((what & CURL_POLL_IN) != 0 ? UV_READABLE : 0) | ((what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0);
    uv_poll_start(&socket->poll, events, OnReady);
    return 0;
  }

  static void OnReady(uv_poll_t* poll, int error, int events) {
    const auto& socket = *static_cast<Socket*>(poll->data);
    const int ready = error != 0 ? CURL_CSELECT_ERR
                                 : ((events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0) |
                                       ((events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0);
    socket.owner->Act(socket.fd, ready);
  }

  void Act(curl_socket_t fd, int ready) {
    int running = 0;
    curl_multi_socket_action(multi, fd, ready, &running);
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;
      Transfer* transfer = nullptr;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
      curl_multi_remove_handle(multi, easy);  // also removes the message
      transfer->OnDone(code);
    }
  }

  Loop& loop;
  CURLM* multi = nullptr;
  Timer timer;
};

CurlLoop::CurlLoop(Loop& loop) : impl_(std::make_unique<Impl>(loop)) {}
CurlLoop::~CurlLoop() = default;

void CurlLoop::Add(CURL* easy, Transfer& transfer) {
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  curl_multi_add_handle(impl_->multi, easy);
}

void CurlLoop::Remove(CURL* easy) { curl_multi_remove_handle(impl_->multi, easy); }

}  // namespace tributary
