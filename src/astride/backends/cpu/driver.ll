; The driver: how a kernel's units are shared out among threads. Nothing here knows what a kernel computes.
;
; A kernel is   void kernel(ptr geometry, ptr a, ptr b, ptr c, ptr d, i64 begin, i64 end)   and computes the units
; [begin, end). Which thread computes which units changes from run to run; what a unit gives does not depend on it.
;
; The state is 16 words of 64 bytes, each on a cache line of its own:
;    0 epoch     counts the launches; workers watch it
;    1 open      1 while a launch takes helpers
;    2 active    helpers inside the launch, and those about to find out that they are too late
;    3 busy      1 while some caller owns the state
;    4 next      the next unit to be taken
;    5 total     6 chunk: units, and how many are taken at once
;    7 kernel    8 geometry  9 a  10 b  11 c  12 d
;   13 limit     helpers with a number below this take part
;   14 stop      1 when the process ends
;
; Nobody waits for a helper that has not come: a sleeping or missing worker only means less help. So a process works
; after fork, where its workers are gone, and the last microseconds of a launch never wait for one to wake up.

define internal ptr @word(ptr %state, i64 %number) alwaysinline {
  %offset = shl i64 %number, 6
  %place = getelementptr i8, ptr %state, i64 %offset
  ret ptr %place
}

define internal i64 @read(ptr %state, i64 %number) alwaysinline {
  %place = call ptr @word(ptr %state, i64 %number)
  %value = load atomic i64, ptr %place acquire, align 8
  ret i64 %value
}

define internal void @write(ptr %state, i64 %number, i64 %value) alwaysinline {
  %place = call ptr @word(ptr %state, i64 %number)
  store atomic i64 %value, ptr %place release, align 8
  ret void
}

define internal void @call_kernel(i64 %kernel, ptr %state, i64 %begin, i64 %end) alwaysinline {
  %geometry.i = call i64 @read(ptr %state, i64 8)
  %a.i = call i64 @read(ptr %state, i64 9)
  %b.i = call i64 @read(ptr %state, i64 10)
  %c.i = call i64 @read(ptr %state, i64 11)
  %d.i = call i64 @read(ptr %state, i64 12)
  %geometry = inttoptr i64 %geometry.i to ptr
  %a = inttoptr i64 %a.i to ptr
  %b = inttoptr i64 %b.i to ptr
  %c = inttoptr i64 %c.i to ptr
  %d = inttoptr i64 %d.i to ptr
  %code = inttoptr i64 %kernel to ptr
  call void %code(ptr %geometry, ptr %a, ptr %b, ptr %c, ptr %d, i64 %begin, i64 %end)
  ret void
}

; Take units until none are left.
define internal void @drain(ptr %state) {
entry:
  %next = call ptr @word(ptr %state, i64 4)
  %total = call i64 @read(ptr %state, i64 5)
  %chunk = call i64 @read(ptr %state, i64 6)
  %kernel = call i64 @read(ptr %state, i64 7)
  br label %take
take:
  %begin = atomicrmw add ptr %next, i64 %chunk acq_rel
  %some = icmp slt i64 %begin, %total
  br i1 %some, label %work, label %out
work:
  %far = add i64 %begin, %chunk
  %inside = icmp slt i64 %far, %total
  %end = select i1 %inside, i64 %far, i64 %total
  call void @call_kernel(i64 %kernel, ptr %state, i64 %begin, i64 %end)
  br label %take
out:
  ret void
}

; A worker's whole life between two sleeps: watch the epoch, help, watch again. Returns the epoch it has seen when it has
; looked `patience` times and nothing has come, or -1 when the process ends.
define i64 @attend(ptr %state, i64 %number, i64 %seen0, i64 %patience) {
entry:
  %active = call ptr @word(ptr %state, i64 2)
  br label %watch
watch:
  %seen = phi i64 [ %seen0, %entry ], [ %epoch, %leave ]
  br label %look
look:
  %count = phi i64 [ 0, %watch ], [ %count.next, %rest ]
  %epoch = call i64 @read(ptr %state, i64 0)
  %news = icmp ne i64 %epoch, %seen
  br i1 %news, label %enter, label %idle
idle:
  %count.next = add i64 %count, 1
  %tired = icmp sge i64 %count.next, %patience
  br i1 %tired, label %sleep, label %rest
rest:
  call void asm sideeffect "RELAX", ""()
  br label %look
sleep:
  ret i64 %seen
enter:
  %before = atomicrmw add ptr %active, i64 1 seq_cst
  %stop = call i64 @read(ptr %state, i64 14)
  %ends = icmp ne i64 %stop, 0
  br i1 %ends, label %dismiss, label %check
check:
  %open.place = call ptr @word(ptr %state, i64 1)
  %open = load atomic i64, ptr %open.place seq_cst, align 8
  %limit = call i64 @read(ptr %state, i64 13)
  %wanted = icmp slt i64 %number, %limit
  %taking = icmp ne i64 %open, 0
  %helps = and i1 %wanted, %taking
  br i1 %helps, label %help, label %leave
help:
  call void @drain(ptr %state)
  br label %leave
leave:
  %after = atomicrmw sub ptr %active, i64 1 seq_cst
  br label %watch
dismiss:
  %gone = atomicrmw sub ptr %active, i64 1 seq_cst
  ret i64 -1
}

; Compute all units with up to `limit` helpers. A caller who finds the state taken works alone, beside whoever has it.
define void @launch(ptr %state, i64 %kernel, ptr %geometry, ptr %a, ptr %b, ptr %c, ptr %d, i64 %total, i64 %chunk, i64 %limit) {
entry:
  %alone = icmp eq i64 %limit, 0
  br i1 %alone, label %serial, label %try
try:
  %busy = call ptr @word(ptr %state, i64 3)
  %pair = cmpxchg ptr %busy, i64 0, i64 1 acq_rel acquire
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %shared, label %serial
serial:
  %code = inttoptr i64 %kernel to ptr
  call void %code(ptr %geometry, ptr %a, ptr %b, ptr %c, ptr %d, i64 0, i64 %total)
  ret void
shared:
  call void @write(ptr %state, i64 4, i64 0)
  call void @write(ptr %state, i64 5, i64 %total)
  call void @write(ptr %state, i64 6, i64 %chunk)
  call void @write(ptr %state, i64 7, i64 %kernel)
  %geometry.i = ptrtoint ptr %geometry to i64
  %a.i = ptrtoint ptr %a to i64
  %b.i = ptrtoint ptr %b to i64
  %c.i = ptrtoint ptr %c to i64
  %d.i = ptrtoint ptr %d to i64
  call void @write(ptr %state, i64 8, i64 %geometry.i)
  call void @write(ptr %state, i64 9, i64 %a.i)
  call void @write(ptr %state, i64 10, i64 %b.i)
  call void @write(ptr %state, i64 11, i64 %c.i)
  call void @write(ptr %state, i64 12, i64 %d.i)
  call void @write(ptr %state, i64 13, i64 %limit)
  %open = call ptr @word(ptr %state, i64 1)
  store atomic i64 1, ptr %open seq_cst, align 8
  %epoch = call ptr @word(ptr %state, i64 0)
  %old = atomicrmw add ptr %epoch, i64 1 seq_cst
  call void @drain(ptr %state)
  store atomic i64 0, ptr %open seq_cst, align 8
  %active = call ptr @word(ptr %state, i64 2)
  br label %join
join:
  %helpers = load atomic i64, ptr %active seq_cst, align 8
  %none = icmp eq i64 %helpers, 0
  br i1 %none, label %done, label %wait
wait:
  call void asm sideeffect "RELAX", ""()
  br label %join
done:
  call void @write(ptr %state, i64 3, i64 0)
  ret void
}

; Let workers see that something has changed: the process ends.
define void @dismiss(ptr %state) {
  call void @write(ptr %state, i64 14, i64 1)
  %epoch = call ptr @word(ptr %state, i64 0)
  %old = atomicrmw add ptr %epoch, i64 1 seq_cst
  ret void
}
