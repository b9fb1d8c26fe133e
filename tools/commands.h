// The subcommands of attend: one file and one line each. Each adds itself to the program.
#ifndef ATTEND_TOOLS_COMMANDS_H_
#define ATTEND_TOOLS_COMMANDS_H_

#include "tools/program.h"

namespace attend::tools {

void AddTag(Program* program);
void AddClassify(Program* program);
void AddEmbed(Program* program);
void AddRank(Program* program);
void AddGenerate(Program* program);
void AddTokenize(Program* program);
void AddAttention(Program* program);
void AddRun(Program* program);
void AddConvert(Program* program);
void AddInspect(Program* program);
void AddVerify(Program* program);
void AddBench(Program* program);
void AddInfo(Program* program);
void AddCompletion(Program* program);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_COMMANDS_H_
