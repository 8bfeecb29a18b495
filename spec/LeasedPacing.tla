------------------------------ MODULE LeasedPacing -----------------------------
(* Places in a pacer's queue, booked in a row for a node that hands them out.  A  *)
(* node asks, the store books, the answer comes: together at most Late ticks.     *)
(* The first place is as long from the answer as it was from the booking.         *)
(*                                                                                *)
(* Time is counted in parts from now: a place lasts Period of them, and a tick    *)
(* Rate.  over is what left in the worst interval that ends now, less what the    *)
(* rate allows in it.  Nothing is given back.                                     *)
EXTENDS Integers
CONSTANTS Nodes, Rate, Period, Burst, Wait, Batch, Late,
          FromAnswer     \* guard: delays count from the answer, not from the asking
VARIABLES water, free,   \* the store: burst in use, and the end of the last place
          over, early, leaving,
          st, age, units, delay, slot, atonce,    \* of each node: on the way
          first, count, next                      \* its block
vars == <<water, free, over, early, leaving,
          st, age, units, delay, slot, atonce, first, count, next>>
store == <<water, free>>
law == <<over, early, leaving>>
way == <<st, age, units, delay, atonce>>
block == <<first, count, next>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Up(a, b) == (a + b - 1) \div b
Horizon == 16
Zero == [n \in Nodes |-> 0]
Init == /\ water = 0 /\ free = 0 /\ over = 0 /\ early = FALSE
        /\ leaving = [i \in 1..Horizon |-> 0]
        /\ st = [n \in Nodes |-> "idle"] /\ age = Zero /\ units = Zero /\ delay = Zero
        /\ slot = Zero /\ atonce = [n \in Nodes |-> FALSE]
        /\ first = Zero /\ count = Zero /\ next = Zero

Send(n) == /\ st[n] = "idle" /\ count[n] = 0 /\ st' = [st EXCEPT ![n] = "asked"]
           /\ UNCHANGED <<age, units, delay, slot, atonce>>
           /\ UNCHANGED store /\ UNCHANGED law /\ UNCHANGED block

Forget(n) == /\ st' = [st EXCEPT ![n] = "idle"] /\ age' = [age EXCEPT ![n] = 0]
             /\ units' = [units EXCEPT ![n] = 0] /\ delay' = [delay EXCEPT ![n] = 0]
             /\ atonce' = [atonce EXCEPT ![n] = FALSE]

Dry == (Burst * Period - water) \div Period
\* The most places in a row of which the last begins within the longest wait.
Row == IF free > Wait * Rate THEN 0 ELSE Min(Batch, 1 + (Wait * Rate - free) \div Period)
BookAtOnce(n) == /\ Dry >= 1
                 /\ LET k == Min(Batch, Dry) IN
                    water' = water + k * Period /\ units' = [units EXCEPT ![n] = k]
                 /\ st' = [st EXCEPT ![n] = "booked"] /\ atonce' = [atonce EXCEPT ![n] = TRUE]
                 /\ UNCHANGED <<free, age, delay, slot>>
BookRow(n) == /\ Dry < 1 /\ Row > 0
              /\ water' = Burst * Period /\ free' = free + Row * Period
              /\ st' = [st EXCEPT ![n] = "booked"] /\ units' = [units EXCEPT ![n] = Row]
              /\ delay' = [delay EXCEPT ![n] = free] /\ slot' = [slot EXCEPT ![n] = free]
              /\ UNCHANGED <<age, atonce>>
Refuse(n) == Dry < 1 /\ Row = 0 /\ Forget(n) /\ UNCHANGED slot /\ UNCHANGED store
Book(n) == /\ st[n] = "asked" /\ (BookAtOnce(n) \/ BookRow(n) \/ Refuse(n))
           /\ UNCHANGED law /\ UNCHANGED block

Arrive(n) == /\ st[n] = "booked" /\ Forget(n)
             /\ IF atonce[n]
                THEN over' = over + units[n] * Period /\ UNCHANGED block
                ELSE /\ first' = [first EXCEPT ![n] =
                                    delay[n] - IF FromAnswer THEN 0 ELSE age[n] * Rate]
                     /\ count' = [count EXCEPT ![n] = units[n]]
                     /\ next' = [next EXCEPT ![n] = 0] /\ UNCHANGED over
             /\ UNCHANGED <<early, leaving, slot>> /\ UNCHANGED store
Lose(n) == /\ st[n] # "idle" /\ Forget(n)
           /\ slot' = [slot EXCEPT ![n] = IF count[n] = 0 THEN 0 ELSE @]
           /\ UNCHANGED store /\ UNCHANGED law /\ UNCHANGED block

\* The first place that no node has, and that has not passed.
Passed(f) == IF f >= 0 THEN 0 ELSE Up(0 - f, Period)
Place(n) == Max(next[n], Passed(first[n]))
At(n) == first[n] + Place(n) * Period
LeaveIn(d) == LET t == Up(d, Rate) IN
              IF t = 0 THEN over' = over + Period /\ UNCHANGED leaving
                       ELSE leaving' = [leaving EXCEPT ![t] = @ + 1] /\ UNCHANGED over
ForgetBlock(n) == /\ first' = [first EXCEPT ![n] = 0] /\ slot' = [slot EXCEPT ![n] = 0]
                  /\ count' = [count EXCEPT ![n] = 0] /\ next' = [next EXCEPT ![n] = 0]
Take(n) == /\ count[n] > 0 /\ Place(n) < count[n] /\ At(n) <= Wait * Rate
           /\ LeaveIn(At(n))
           /\ early' = (early \/ At(n) < slot[n] + Place(n) * Period)
           /\ IF Place(n) + 1 = count[n] THEN ForgetBlock(n)
              ELSE next' = [next EXCEPT ![n] = Place(n) + 1] /\ UNCHANGED <<first, count, slot>>
           /\ UNCHANGED store /\ UNCHANGED way
Crash(n) == /\ count[n] > 0 /\ ForgetBlock(n)
            /\ UNCHANGED store /\ UNCHANGED law /\ UNCHANGED way

HasSlot(n) == count[n] > 0 \/ (st[n] = "booked" /\ ~atonce[n])
IsOver(n) == count[n] > 0 /\ Max(next[n], Passed(first[n] - Rate)) >= count[n]
Tick == /\ \A n \in Nodes : st[n] = "idle" \/ age[n] < Late
        /\ water' = Max(0, water - Max(0, Rate - free)) /\ free' = Max(0, free - Rate)
        /\ over' = Max(0, over - Rate) + leaving[1] * Period
        /\ leaving' = [i \in 1..Horizon |-> IF i = Horizon THEN 0 ELSE leaving[i + 1]]
        /\ age' = [n \in Nodes |-> IF st[n] = "idle" THEN age[n] ELSE age[n] + 1]
        /\ slot' = [n \in Nodes |-> IF IsOver(n) THEN 0
                                    ELSE IF HasSlot(n) THEN slot[n] - Rate ELSE slot[n]]
        /\ first' = [n \in Nodes |-> IF IsOver(n) \/ count[n] = 0 THEN 0 ELSE first[n] - Rate]
        /\ count' = [n \in Nodes |-> IF IsOver(n) THEN 0 ELSE count[n]]
        /\ next' = [n \in Nodes |-> IF IsOver(n) THEN 0 ELSE next[n]]
        /\ UNCHANGED <<early, st, units, delay, atonce>>

Next == Tick \/ \E n \in Nodes :
            Send(n) \/ Book(n) \/ Arrive(n) \/ Lose(n) \/ Take(n) \/ Crash(n)
Spec == Init /\ [][Next]_vars

Rounded == IF Period % Rate = 0 THEN 0 ELSE Rate - 1
Pace == over <= (Burst + 1) * Period + Late * Rate + Rounded
NotEarly == ~early
Reached == over <= Burst * Period      \* must be violated
================================================================================
