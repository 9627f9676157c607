#include "cli/process_tree.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace tributary::cli {
namespace {

constexpr size_t kFollowedMax = 100'000;

}  // namespace

std::set<int64_t> Descendants(int64_t root, const Parents& parents) {
  std::multimap<int64_t, int64_t> children;
  for (const auto& [pid, parent] : parents) children.emplace(parent, pid);
  std::set<int64_t> found = {root};
  std::vector<int64_t> open = {root};
  while (!open.empty()) {
    auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      if (found.insert(child->second).second) open.push_back(child->second);
    }
  }
  return found;
}

void AddLivingChildren(const std::string& proc_root, int64_t root, Parents& parents) {
  std::vector<int64_t> open = {root};
  std::set<int64_t> followed = {root};
  while (!open.empty() && followed.size() < kFollowedMax) {
    int64_t pid = open.back();
    open.pop_back();
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(fmt::format("{}/{}/task", proc_root, pid), error)) {
      std::ifstream in(task.path() / "children");
      int64_t child = 0;
      while (in >> child) {
        parents[child] = pid;
        if (followed.insert(child).second) open.push_back(child);
      }
    }
  }
}

std::vector<std::string> PidSelectors(const std::set<int64_t>& pids, size_t pattern_bytes_max) {
  std::vector<std::string> selectors;
  std::string pattern;
  auto close = [&] {
    if (!pattern.empty()) selectors.push_back(fmt::format("{{process_pid=~\"{}\"}}", pattern));
    pattern.clear();
  };
  for (int64_t pid : pids) {
    std::string text = std::to_string(pid);
    if (pattern.size() + 1 + text.size() > pattern_bytes_max) close();
    if (!pattern.empty()) pattern += '|';
    pattern += text;
  }
  close();
  return selectors;
}

}  // namespace tributary::cli
