-------------------------------- MODULE Waiters --------------------------------
(* Asks of one key at one node that wait for its errand, and what makes sure that *)
(* each is answered.  The errand is sent, the store lends, the answer comes; those *)
(* who wait take, or are refused from memory; if some are left, the errand goes   *)
(* again.  Messages get lost, other nodes take from the same window, and who has  *)
(* waited for Patience ticks is told that it is late.  The errand goes on for Late *)
(* ticks more: what comes then is for who asks next.  Waiter i costs i.           *)
EXTENDS Integers
CONSTANTS Waiting, Limit, Batch, Ticks,
          Patience,   \* ticks; guard off: 0
          Late,       \* ticks that an errand outlives patience
          Loss,       \* messages may be lost
          Again,      \* guard: what is left of an errand goes again
          Overdue,    \* guard: an errand is given up some day
          Down        \* guard: no call waits for an errand that is overdue
VARIABLES phase, used, credit, denial, errand, least, age, units, left, stale, waits
vars == <<phase, used, credit, denial, errand, least, age, units, left, stale, waits>>
answer == <<units, left, stale>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Waiters == 1..Waiting
Init == /\ phase = 0 /\ used = 0 /\ credit = 0 /\ denial = 0 /\ errand = "none"
        /\ least = 0 /\ age = 0 /\ units = 0 /\ left = 0 /\ stale = FALSE
        /\ waits = [i \in Waiters |-> 0]

Refuses(d, i) == d > 0 /\ i >= d
Flies == errand \in {"flying", "served", "lost"}
IsOverdue == Late > 0 /\ Flies /\ age >= Patience
Ask(i) == /\ waits[i] = 0
          /\ IF credit >= i THEN credit' = credit - i /\ UNCHANGED <<errand, waits>>
             ELSE IF Refuses(denial, i) \/ (Down /\ IsOverdue) THEN UNCHANGED <<credit, errand, waits>>
             ELSE /\ waits' = [waits EXCEPT ![i] = Patience + 1] /\ UNCHANGED credit
                  /\ errand' = IF errand = "none" THEN "wanting" ELSE errand
          /\ UNCHANGED <<phase, used, denial, least, age>> /\ UNCHANGED answer

Somebody(w) == \E i \in Waiters : w[i] > 0
Cheapest == CHOOSE i \in Waiters : waits[i] > 0 /\ \A j \in Waiters : waits[j] > 0 => i <= j
Send == /\ errand = "wanting" /\ errand' = "flying"
        /\ least' = Max(1, (IF Somebody(waits) THEN Cheapest ELSE denial) - credit)
        /\ UNCHANGED <<phase, used, credit, denial, age, waits>> /\ UNCHANGED answer

Want == Max(Batch, least)
Lent == LET k == Min(Want, Limit - used) IN IF k >= least THEN k ELSE 0
Serve == /\ errand = "flying" /\ errand' = "served"
         /\ units' = Lent /\ used' = used + Lent /\ left' = Limit - used'
         /\ UNCHANGED <<phase, credit, denial, least, age, stale, waits>>

\* The calls that wait, one after the other: what is in hand then, and which still wait.
RECURSIVE Settled(_, _, _, _)
Settled(i, k, d, w) ==
    IF i > Waiting THEN [k |-> k, w |-> w]
    ELSE IF w[i] > 0 /\ k >= i THEN Settled(i + 1, k - i, d, [w EXCEPT ![i] = 0])
    ELSE IF w[i] > 0 /\ Refuses(d, i) THEN Settled(i + 1, k, d, [w EXCEPT ![i] = 0])
    ELSE Settled(i + 1, k, d, w)
Rest(w) == /\ errand' = IF Somebody(w) /\ Again THEN "wanting" ELSE "none"
           /\ least' = 0 /\ age' = 0 /\ units' = 0 /\ left' = 0 /\ stale' = FALSE
Reply == /\ errand = "served"
         /\ LET k == IF stale THEN credit ELSE credit + units
                d == IF stale THEN denial
                     ELSE IF units < Want THEN left + k + 1
                     ELSE IF units > 0 THEN 0 ELSE denial
                after == Settled(1, k, d, waits) IN
            /\ credit' = after.k /\ denial' = d /\ waits' = after.w /\ Rest(after.w)
         /\ UNCHANGED <<phase, used>>
Lose == /\ Loss /\ errand \in {"flying", "served"} /\ errand' = "lost"
        /\ units' = 0 /\ left' = 0 /\ stale' = FALSE
        /\ UNCHANGED <<phase, used, credit, denial, least, age, waits>>
Others == /\ used < Limit /\ used' = used + 1
          /\ UNCHANGED <<phase, credit, denial, errand, least, age, waits>>
          /\ UNCHANGED answer

Turns == phase' = 0
Fresher(w) == [i \in Waiters |-> IF w[i] <= 2 THEN 0 ELSE w[i] - 1]
TellsAll == Patience > 0 /\ Flies /\ age + 1 = Patience /\ Overdue
GivesUp == Patience > 0 /\ Flies /\ age + 1 >= Patience + Late /\ Overdue
Tick == /\ phase' = (phase + 1) % Ticks
        /\ IF Turns THEN used' = 0 /\ credit' = 0 /\ denial' = 0
                    ELSE UNCHANGED <<used, credit, denial>>
        /\ waits' = IF TellsAll THEN [i \in Waiters |-> 0]
                    ELSE IF Patience > 0 THEN Fresher(waits) ELSE waits
        /\ IF GivesUp THEN Rest([i \in Waiters |-> 0])
           ELSE /\ age' = IF Patience = 0 \/ ~Flies THEN age
                          ELSE IF Overdue THEN age + 1 ELSE Min(age + 1, Patience)
                /\ stale' = IF Turns THEN errand = "served" ELSE stale
                /\ UNCHANGED <<errand, least, units, left>>

Next == Send \/ Serve \/ Reply \/ Lose \/ Others \/ Tick \/ \E i \in Waiters : Ask(i)
Spec == Init /\ [][Next]_vars

Lending == used <= Limit
NotForgotten == Somebody(waits) => errand # "none"

FairSpec == Spec /\ WF_vars(Send) /\ WF_vars(Serve) /\ WF_vars(Reply) /\ WF_vars(Tick)
Answered == \A i \in Waiters : waits[i] > 0 ~> waits[i] = 0
Free == errand # "none" ~> errand = "none"
================================================================================
