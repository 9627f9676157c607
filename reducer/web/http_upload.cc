#include "reducer/web/http_upload.h"

#include <utility>

namespace tributary {

bool HttpUpload::Read(const std::function<bool(std::string_view)>& take) {
  while (true) {
    std::string piece;
    {
      std::unique_lock lock(mutex_);
      if (bytes_.empty() && state_ == State::kOpen) {
        wanted_ = true;
        lock.unlock();
        on_wanted_();
        lock.lock();
      }
      changed_.wait(lock, [&] { return !bytes_.empty() || state_ != State::kOpen; });
      if (state_ == State::kFailed) return false;
      if (bytes_.empty()) return true;
      piece = std::exchange(bytes_, {});
    }
    if (!take(piece)) return false;
  }
}

bool HttpUpload::is_wanted() const {
  std::lock_guard lock(mutex_);
  return wanted_;
}

size_t HttpUpload::room() const {
  std::lock_guard lock(mutex_);
  return bytes_.size() >= kBytesMax ? 0 : kBytesMax - bytes_.size();
}

void HttpUpload::Push(std::string piece) {
  {
    std::lock_guard lock(mutex_);
    bytes_ += piece;
  }
  changed_.notify_one();
}

void HttpUpload::Finish() {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kOpen) state_ = State::kComplete;
  }
  changed_.notify_one();
}

void HttpUpload::Fail() {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kOpen) state_ = State::kFailed;
  }
  changed_.notify_one();
}

}  // namespace tributary
