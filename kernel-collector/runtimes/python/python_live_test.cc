// Reads the code objects and the stack of real Pythons, and compares them with what Python itself says. The environment
// variable TRIBUTARY_PYTHONS may name more interpreters than the system's: commands, separated by commas, such as
// "/opt/python3.9/bin/python3,chroot /srv/sid /usr/bin/python3.14".
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "kernel-collector/processes/maps_parser.h"
#include "kernel-collector/runtimes/process_memory.h"
#include "kernel-collector/runtimes/python/memory_image_testing.h"
#include "kernel-collector/runtimes/python/python_binary.h"

namespace tributary {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

std::vector<std::string> Interpreters() {
  const char* more = getenv("TRIBUTARY_PYTHONS");
  std::vector<std::string> out = {"/usr/bin/python3"};
  for (const std::string& command : Split(more != nullptr ? more : "", ',')) out.push_back(command);
  return out;
}

std::string Unhex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// A Python that runs known_code.py. It waits until the object is destroyed.
class Interpreter {
 public:
  explicit Interpreter(const std::string& command) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    const std::string script = FileText(TRIBUTARY_SOURCE_DIR "/kernel-collector/runtimes/python/known_code.py");
    std::vector<std::string> words = Split(command, ' ');
    words.insert(words.end(), {"-I", "-c", script});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_ = Fd(in[1]);
    output_ = fdopen(out[0], "r");
  }
  ~Interpreter() {
    input_ = Fd();
    if (output_ != nullptr) fclose(output_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  // Returns the next line as words. Empty at the end.
  std::vector<std::string> Line() {
    char* line = nullptr;
    size_t size = 0;
    ssize_t got = getline(&line, &size, output_);
    std::string text(line, got > 0 ? static_cast<size_t>(got) - 1 : 0);
    free(line);
    return Split(text, ' ');
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Fd input_;
  FILE* output_ = nullptr;
};

struct Loaded {
  RuntimeBinaryPtr binary;
  uint64_t bias = 0;
};

// Finds the interpreter among the files that the process has mapped.
Loaded FindBinary(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  Loaded loaded;
  std::map<std::string, bool> seen;
  ParseMaps(FileText(process + "/maps"), [&](const MapsEntry& entry) {
    std::string path(entry.path);
    if (loaded.binary || !path.starts_with('/') || seen[path]) return;
    seen[path] = true;
    // Our root is the root of the process, or contains it.
    auto file = ElfFile::Open(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    if (!file.ok()) return;
    auto binary = ReadPythonBinary(**file, path);
    EXPECT_TRUE(binary.ok()) << binary.status();
    if (!binary.ok() || *binary == nullptr) return;
    loaded.binary = *binary;
    loaded.bias = entry.start - *FileOffsetToAddress((*file)->segments(), entry.file_offset);
  });
  return loaded;
}

class Target {
 public:
  explicit Target(pid_t pid) : reader_(Clock::Real(), metrics_), memory_(reader_.Open(Pid{pid})) {}
  ProcessMemory& memory() { return *memory_; }
  template <typename T>
  T At(uint64_t address) {
    T value{};
    ProcessMemory::Part part{address, {reinterpret_cast<char*>(&value), sizeof(value)}};
    absl::Status status = memory_->Read({&part, 1});
    EXPECT_TRUE(status.ok()) << status << std::hex << " " << address;
    return value;
  }
  uint32_t Check(const trib_python& walk, uint64_t code) {
    uint64_t hash = 0;
    for (unsigned i = 0; i < walk.check_bytes; i += 8) {
      hash = TRIB_CHECK_ADD(hash, At<uint64_t>(code + walk.check_first + i));
    }
    hash = TRIB_CHECK_ADD(hash, At<uint64_t>(At<uint64_t>(code + walk.code_name) + walk.name_hash));
    return static_cast<uint32_t>(hash >> 32);
  }

 private:
  Metrics metrics_;
  ProcessMemoryReader reader_;
  std::unique_ptr<ProcessMemory> memory_;
};

void CompareCode(Target& target, const Loaded& loaded, const std::vector<std::string>& line) {
  const uint64_t address = std::stoull(line[1], nullptr, 16);
  const uint32_t check = target.Check(loaded.binary->layout.python, address);
  auto function = loaded.binary->ReadFunction(target.memory(), {address, check}, loaded.bias);
  ASSERT_TRUE(function.ok()) << function.status() << " " << Unhex(line[3]) << " " << Unhex(line[4]);
  ASSERT_EQ((*function)->name, Unhex(line[3]));
  ASSERT_EQ((*function)->file, Unhex(line[4]));
  const auto first_line = static_cast<uint32_t>(std::stoul(line[2]));
  ASSERT_EQ((*function)->first_line, first_line);
  ASSERT_EQ((*function)->LineAt(-2), first_line);
  for (const std::string& run : Split(line[5], ',')) {
    if (run == "-") continue;
    int begin = 0, end = 0;
    unsigned expected = 0;
    ASSERT_EQ(sscanf(run.c_str(), "%d:%d:%u", &begin, &end, &expected), 3) << run;
    for (int position = begin; position < end; position += 2) {
      ASSERT_EQ((*function)->LineAt(position), expected) << (*function)->name << " at " << position;
    }
  }
  // With another check, it is another object.
  EXPECT_EQ(loaded.binary->ReadFunction(target.memory(), {address, check ^ 1}, loaded.bias).status().code(),
            absl::StatusCode::kDataLoss);
}

// Keeps what is read, for the corpus of python_code_fuzz.
class Recorder : public ProcessMemory {
 public:
  explicit Recorder(ProcessMemory& memory) : memory_(memory) {}
  absl::Status Read(std::span<const Part> parts) override {
    absl::Status status = memory_.Read(parts);
    for (const Part& part : parts) {
      std::string& piece = image.piece(part.address);
      if (status.ok() && part.to.size() > piece.size()) piece.assign(part.to.data(), part.to.size());
    }
    return status;
  }
  testing::MemoryImage image;

 private:
  ProcessMemory& memory_;
};

// If TRIBUTARY_CORPUS is a folder, writes an input for python_code_fuzz for some of the code objects.
void Record(Target& target, const Loaded& loaded, const std::vector<std::string>& line) {
  const char* folder = getenv("TRIBUTARY_CORPUS");
  const std::string name = Unhex(line[3]), file = Unhex(line[4]);
  const bool is_wanted = name == "long" || name == "main" || file.starts_with("/d\u00fcr") || file.starts_with("/a");
  if (folder == nullptr || !is_wanted) return;
  const uint64_t address = std::stoull(line[1], nullptr, 16);
  Recorder recorder(target.memory());
  const CodeObject object{address, target.Check(loaded.binary->layout.python, address)};
  ASSERT_TRUE(loaded.binary->ReadFunction(recorder, object, loaded.bias).ok());
  const std::string& version = loaded.binary->version;
  std::string input{static_cast<char>(std::stoi(version.substr(2))), static_cast<char>(version.back() == 't' ? 1 : 0)};
  input.append(reinterpret_cast<const char*>(&address), sizeof(address));
  std::ofstream(std::string(folder) + "/" + version + "_" + line[1], std::ios::binary) << input + recorder.image.Text();
}

struct Frame {
  uint64_t code = 0;
  int32_t position = 0;
  bool entry = false;
};

// Walks the frames of a thread as the BPF program does, with the layout of the binary.
std::vector<Frame> Walk(Target& target, const trib_python& walk, uint64_t state) {
  std::vector<Frame> frames;
  uint64_t frame = target.At<uint64_t>(state + walk.frame);
  if (walk.has_cframe != 0) frame = target.At<uint64_t>(frame + walk.cframe_frame);
  for (int i = 0; frame != 0 && i < 100; ++i) {
    const uint64_t code = target.At<uint64_t>(frame + walk.frame_code) & ~uint64_t{walk.code_tag_mask};
    const uint8_t owner = target.At<uint8_t>(frame + walk.frame_owner);
    if (walk.entry == TRIB_PYTHON_ENTRY_OWNER && owner >= 3) {
      if (!frames.empty()) frames.back().entry = true;
    } else {
      int32_t position = 0;
      if (walk.instruction_is_pointer != 0) {
        uint64_t begin = code + walk.code_instructions;
        if (walk.code_copies != 0) {
          const uint64_t copies = target.At<uint64_t>(code + walk.code_copies);
          begin = target.At<uint64_t>(copies + 8 + 8 * target.At<uint32_t>(frame + walk.frame_copy));
        }
        position = static_cast<int32_t>(target.At<uint64_t>(frame + walk.frame_instruction) - begin);
      } else {
        position = target.At<int32_t>(frame + walk.frame_instruction) << walk.instruction_shift;
      }
      frames.push_back({code, position,
                        walk.entry == TRIB_PYTHON_ENTRY_EACH || (walk.entry == TRIB_PYTHON_ENTRY_FLAG && owner != 0)});
    }
    frame = target.At<uint64_t>(frame + walk.frame_back);
  }
  return frames;
}

void CompareWith(const std::string& command) {
  Interpreter interpreter(command);
  Loaded loaded;
  std::vector<std::vector<std::string>> codes, frames;
  uint64_t state = 0, thread = 0;
  for (;;) {
    std::vector<std::string> line = interpreter.Line();
    ASSERT_FALSE(line.empty()) << "the interpreter did not run";
    if (line[0] == "code") codes.push_back(line);
    if (line[0] == "frame") frames.push_back(line);
    if (line[0] == "frame" && frames.size() == 6) break;
    if (line[0] != "state") continue;
    state = std::stoull(line[1], nullptr, 16);
    thread = std::stoull(line[2], nullptr, 16);
  }
  ASSERT_GT(codes.size(), 2000u);
  loaded = FindBinary(interpreter.pid());
  ASSERT_NE(loaded.binary, nullptr);
  const trib_python& walk = loaded.binary->layout.python;
  printf("%s: %s, %zu code objects, loop in %zu parts, tls %ld\n", command.c_str(), loaded.binary->version.c_str(),
         codes.size(), loaded.binary->loops.size(), static_cast<long>(walk.tls_state));
  Target target(interpreter.pid());
  for (const auto& line : codes) {
    CompareCode(target, loaded, line);
    Record(target, loaded, line);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(target.At<uint64_t>(state + walk.thread_id), thread);
  std::vector<Frame> walked = Walk(target, walk, state);
  ASSERT_EQ(walked.size(), frames.size());
  std::string entries;
  for (size_t i = 0; i < walked.size(); ++i) {
    EXPECT_EQ(walked[i].code, std::stoull(frames[i][1], nullptr, 16)) << i;
    auto function =
        loaded.binary->ReadFunction(target.memory(), {walked[i].code, target.Check(walk, walked[i].code)}, loaded.bias);
    ASSERT_TRUE(function.ok()) << function.status();
    EXPECT_EQ((*function)->LineAt(walked[i].position), std::stoul(frames[i][2])) << (*function)->name;
    entries += walked[i].entry ? 'e' : '.';
  }
  // sorted() calls the lambda, in a loop of its own. Until 3.10 every frame has its own loop.
  EXPECT_EQ(entries.substr(0, 2), walk.entry == TRIB_PYTHON_ENTRY_EACH ? "ee" : ".e");
  EXPECT_EQ(entries.back(), 'e');
}

TEST(PythonLive, ReadsCodeObjectsAndStacksAsPythonDoes) {
  for (const std::string& command : Interpreters()) {
    SCOPED_TRACE(command);
    CompareWith(command);
  }
}

}  // namespace
}  // namespace tributary
