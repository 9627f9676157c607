#pragma once

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "kernel-collector/processes/worker.h"
#include "profile/executable_id.h"

namespace tributary {

// Runs jobs on the test's thread when the test calls RunAll.
class FakeExecutor : public Executor {
 public:
  bool Submit(std::function<void()> work, std::function<void()> done) override {
    if (jobs_.size() >= capacity) return false;
    jobs_.emplace_back(std::move(work), std::move(done));
    return true;
  }
  // Runs all jobs, including jobs that these jobs submit. Returns the number of jobs that ran.
  size_t RunAll() {
    size_t ran = 0;
    while (!jobs_.empty()) {
      auto [work, done] = std::move(jobs_.front());
      jobs_.pop_front();
      work();
      done();
      ++ran;
    }
    return ran;
  }
  size_t waiting() const { return jobs_.size(); }

  size_t capacity = 1000;

 private:
  std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs_;
};

inline ExecutableId BuildId(std::string_view bytes) {
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, bytes);
}

// The smallest file that the tests need: a GNU build-id, and code at file offset 0x1000 with the ELF address 0x401000.
inline std::string TinyElf(std::string_view build_id, uint64_t entry = 0) {
  std::string bytes(0x2000, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_entry = entry;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr code{};
  code.p_type = PT_LOAD;
  code.p_flags = PF_R | PF_X;
  code.p_offset = 0x1000;
  code.p_vaddr = code.p_paddr = 0x401000;
  code.p_filesz = code.p_memsz = 0x1000;
  code.p_align = 0x1000;
  Elf64_Phdr note{};
  note.p_type = PT_NOTE;
  note.p_flags = PF_R;
  note.p_offset = note.p_vaddr = 0x200;
  note.p_filesz = note.p_memsz = sizeof(Elf64_Nhdr) + 4 + (build_id.size() + 3) / 4 * 4;
  note.p_align = 4;
  Elf64_Nhdr note_header{4, static_cast<Elf64_Word>(build_id.size()), NT_GNU_BUILD_ID};
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &code, sizeof code);
  std::memcpy(bytes.data() + sizeof header + sizeof code, &note, sizeof note);
  std::memcpy(bytes.data() + 0x200, &note_header, sizeof note_header);
  std::memcpy(bytes.data() + 0x200 + sizeof note_header, "GNU", 4);
  std::memcpy(bytes.data() + 0x200 + sizeof note_header + 4, build_id.data(), build_id.size());
  return bytes;
}

// A fake /proc, /sys and cgroup file system in a temporary folder. The destructor removes the folder. All processes
// share one root folder.
class FakeProc {
 public:
  FakeProc() {
    char path[] = "/tmp/tributary-proc-XXXXXX";
    if (mkdtemp(path) == nullptr) std::abort();
    top_ = path;
    std::filesystem::create_directories(top_ + "/proc");
    std::filesystem::create_directories(top_ + "/files");
    std::filesystem::create_directories(top_ + "/cgroup");
    std::filesystem::create_directories(top_ + "/sys");
  }
  ~FakeProc() { std::filesystem::remove_all(top_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  std::string proc() const { return top_ + "/proc"; }
  std::string cgroup() const { return top_ + "/cgroup"; }
  std::string sys() const { return top_ + "/sys"; }
  std::string files() const { return top_ + "/files"; }

  struct Options {
    std::string comm = "prog";
    int parent = 1;
    uint64_t start_ticks = 100;
    uint64_t flags = 0;
    std::string maps, exe, cgroup = "0::/\n";
  };
  void AddProcess(int pid, const Options& options) {
    std::string dir = fmt::format("{}/{}", proc(), pid);
    std::filesystem::create_directories(dir + "/map_files");
    Write(dir + "/stat", fmt::format("{} ({}) S {} 1 1 0 -1 {} 0 0 0 0 0 0 0 0 20 0 1 0 {} 1 1\n", pid, options.comm,
                                     options.parent, options.flags, options.start_ticks));
    Write(dir + "/maps", options.maps);
    Write(dir + "/cgroup", options.cgroup);
    std::filesystem::remove(dir + "/exe");
    if (!options.exe.empty()) std::filesystem::create_symlink(options.exe, dir + "/exe");
    if (!std::filesystem::exists(dir + "/root")) std::filesystem::create_directory_symlink(files(), dir + "/root");
  }
  // A kernel with the build-id "kernel", and optionally one kernel module. The module's build-id is its name.
  struct Kernel {
    uint64_t text_begin = 0, text_end = 0;
    std::string module;
    uint64_t module_base = 0, module_size = 0;
    std::string more_kallsyms;
  };
  void SetKernel(const Kernel& kernel) {
    AddNote(sys() + "/kernel/notes", "kernel");
    std::string kallsyms = fmt::format("{:016x} T _stext\n{:016x} T _etext\n", kernel.text_begin, kernel.text_end);
    Write(proc() + "/kallsyms", kallsyms + kernel.more_kallsyms);
    if (kernel.module.empty()) return Write(proc() + "/modules", "");
    Write(proc() + "/modules",
          fmt::format("{} {} 0 - Live 0x{:x}\n", kernel.module, kernel.module_size, kernel.module_base));
    AddNote(fmt::format("{}/module/{}/notes/.note.gnu.build-id", sys(), kernel.module), kernel.module);
  }
  void RemoveProcess(int pid) { std::filesystem::remove_all(fmt::format("{}/{}", proc(), pid)); }
  // Adds a file at `path` in the root folder of all processes. Returns the file's path on this machine.
  std::string AddFile(const std::string& path, std::string_view bytes) {
    std::string full = files() + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    Write(full, bytes);
    return full;
  }
  static void Write(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  static void AddNote(const std::string& path, std::string_view build_id) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    Elf64_Nhdr header{4, static_cast<Elf64_Word>(build_id.size()), NT_GNU_BUILD_ID};
    std::string note(reinterpret_cast<const char*>(&header), sizeof header);
    note.append("GNU\0", 4).append(build_id);
    note.resize((note.size() + 3) / 4 * 4);
    Write(path, note);
  }

  std::string top_;
};

}  // namespace tributary
