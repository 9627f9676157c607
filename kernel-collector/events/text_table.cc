#include "kernel-collector/events/text_table.h"

namespace tributary {

TextId TextTable::Take(std::string_view text) {
  if (text.empty()) return TextId{};
  text = text.substr(0, kTextBytesMax);
  if (const auto found = ids_.find(text); found != ids_.end()) {
    ++entries_[found->second].references;
    return TextId{found->second + 1};
  }
  if (bytes_ + text.size() + kEntryBytes > bytes_max_) {
    ++refused_;
    return TextId{};
  }
  const uint32_t number = entries_.Add(Entry{std::string(text), 1});
  ids_.emplace(entries_[number].text, number);
  bytes_ += text.size() + kEntryBytes;
  return TextId{number + 1};
}

void TextTable::Share(TextId id) {
  if (id.value != 0) ++entries_[id.value - 1].references;
}

void TextTable::Release(TextId id) {
  if (id.value == 0) return;
  Entry& entry = entries_[id.value - 1];
  if (--entry.references > 0) return;
  bytes_ -= entry.text.size() + kEntryBytes;
  ids_.erase(entry.text);
  entries_.Remove(id.value - 1);
}

std::string_view TextTable::Text(TextId id) const {
  return id.value == 0 ? std::string_view() : entries_[id.value - 1].text;
}

Texts TextTable::Take(std::string_view name, const EventNames& names) {
  return {.name = Take(name),
          .executable_path = Take(names.executable_path),
          .container_id = Take(names.container_id),
          .cgroup_path = Take(names.cgroup_path)};
}

void TextTable::Share(const Texts& texts) {
  Share(texts.name);
  Share(texts.executable_path);
  Share(texts.container_id);
  Share(texts.cgroup_path);
}

void TextTable::Release(const Texts& texts) {
  Release(texts.name);
  Release(texts.executable_path);
  Release(texts.container_id);
  Release(texts.cgroup_path);
}

size_t TextTable::BytesOf(const Texts& texts) const {
  size_t bytes = 0;
  for (const TextId id : {texts.name, texts.executable_path, texts.container_id, texts.cgroup_path}) {
    if (id.value != 0) bytes += Text(id).size() + kEntryBytes;
  }
  return bytes;
}

EventNames TextTable::Names(const Texts& texts) const {
  return {.executable_path = Text(texts.executable_path),
          .container_id = Text(texts.container_id),
          .cgroup_path = Text(texts.cgroup_path)};
}

}  // namespace tributary
