#include "reducer/symbolizer/symbol_notices.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tributary {

bool SymbolNotices::MayLog() {
  const int64_t minute = clock_.Monotonic().value / kNsPerMinute;
  if (std::exchange(minute_, minute) != minute) logged_ = 0;
  return logged_++ < kLoggedPerMinute;
}

void SymbolNotices::Add(const ExecutableId& id, std::string_view text) {
  Notice notice{.at = clock_.Unix(),
                .executable = id.known() ? id.ToString() : std::string(),
                .text = EscapeForDisplay(text.substr(0, kTextBytesMax))};
  std::lock_guard lock(mutex_);
  auto same = std::find_if(notices_.begin(), notices_.end(), [&](const Notice& other) {
    return other.executable == notice.executable && other.text == notice.text;
  });
  if (same != notices_.end()) {
    notice.times = same->times + 1;
    notices_.erase(same);
  } else if (MayLog()) {
    LogWarning("symbols: {}{}{}", notice.text, notice.executable.empty() ? "" : " executable=", notice.executable);
  }
  notices_.push_front(std::move(notice));
  if (notices_.size() > kKeptMax) notices_.pop_back();
}

std::vector<SymbolNotices::Notice> SymbolNotices::List() const {
  std::lock_guard lock(mutex_);
  return {notices_.begin(), notices_.end()};
}

}  // namespace tributary
